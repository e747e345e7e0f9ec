package api

import (
	"net/http"

	"liveroom/internal/token"
	"liveroom/protocol"
	"liveroom/room"
)

func (a *API) eventCalls() []route {
	return []route{
		{http.MethodPost, "/rooms/{room}/events", speaks, a.postEvent},
		{http.MethodPost, "/broadcast", speaksToAll, a.postBroadcast},
	}
}

// speaksToAll is for what every room is told.
func speaksToAll(c caller, _ string) bool { return speaks(c, token.AllRooms) }

func (a *API) postEvent(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	var e protocol.Custom
	if err := decode(w, r, &e); err != nil {
		return nil, err
	}
	addr := a.cfg.ClientAddr(r)
	by := room.Caller{Who: c.identity(), Addr: addr, Create: func() *protocol.Error { return a.cfg.Create(addr) }}
	return a.cfg.Hub.Emit(r.Context(), c.room, by, &e), nil
}

func (a *API) postBroadcast(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	var e protocol.Custom
	if err := decode(w, r, &e); err != nil {
		return nil, err
	}
	return a.cfg.Hub.Cast(r.Context(), c.identity(), &e), nil
}
