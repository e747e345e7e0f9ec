package api

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"liveroom/protocol"
	"liveroom/room"
)

// Bounds of a list.
const (
	defaultListed = 100
	maxListed     = 1000
)

func (a *API) roomCalls() []route {
	return []route{
		{http.MethodGet, "/rooms", a.enters, a.listRooms},
		{http.MethodGet, "/rooms/{room}", a.enters, a.getRoom},
		{http.MethodPut, "/rooms/{room}", knows, a.putRoom},
		{http.MethodGet, "/rooms/{room}/sanctions", knows, a.listSanctions},
		{http.MethodGet, "/rooms/{room}/users/{user}", knows, a.getPerson},
	}
}

func (a *API) listRooms(_ http.ResponseWriter, r *http.Request, c call) (any, error) {
	limit, err := number(r, "limit", 1, maxListed, defaultListed)
	if err != nil {
		return nil, err
	}
	out := struct {
		Rooms []listed `json:"rooms"`
	}{Rooms: []listed{}}
	for _, room := range a.everywhere(r.Context()) {
		if c.known && !c.Allows(room.ID) {
			continue
		}
		if uint64(len(out.Rooms)) == limit {
			break
		}
		out.Rooms = append(out.Rooms, room)
	}
	return out, nil
}

func (a *API) getRoom(_ http.ResponseWriter, r *http.Request, c call) (any, error) {
	return a.withRoom(r, c)
}

// notCreated keeps a call that only looks from making a room.
func notCreated() *protocol.Error {
	return &protocol.Error{Reason: protocol.ReasonNotFound, Detail: "room"}
}

// putRoom is the act "settings", and the room after it.
func (a *API) putRoom(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	req := protocol.Request{ID: rand.Text()[:16], Action: protocol.ActionSettings, Settings: &protocol.Settings{}}
	if err := decodeUpTo(w, r, req.Settings, maxRoomFilterBytes); err != nil {
		return nil, err
	}
	ack := a.moderate(r, c, &req)
	if ack.Err != nil {
		return nil, ack.Err
	}
	return a.withRoom(r, c)
}

// asStaff calls f with a room that the caller moderates, or may read as a service.
func (a *API) asStaff(r *http.Request, c call, f func(*room.Room) *protocol.Error) *protocol.Error {
	return a.cfg.Hub.With(r.Context(), c.room, notCreated, func(rm *room.Room) *protocol.Error {
		if err := rm.MayModerate(c.identity()); err != nil && !speaks(c.caller, c.room) {
			return err
		}
		return f(rm)
	})
}

// listSanctions tells who is muted or banned, and for how long yet.
func (a *API) listSanctions(_ http.ResponseWriter, r *http.Request, c call) (any, error) {
	limit, err := number(r, "limit", 1, maxListed, defaultListed)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	kind := protocol.Action(q.Get("kind"))
	if kind != "" && kind != protocol.ActionMute && kind != protocol.ActionBan {
		return nil, protocol.BadField("kind", "mute or ban", string(kind))
	}
	out := struct {
		Sanctions []room.InForce `json:"sanctions"`
	}{}
	if err := a.asStaff(r, c, func(rm *room.Room) *protocol.Error {
		out.Sanctions = rm.Sanctions(kind, q.Get("user"), q.Get("after"), int(limit))
		return nil
	}); err != nil {
		return nil, err
	}
	return out, nil
}

// person is who somebody is in a room, over all nodes.
type person struct {
	room.Person
	Sanctions []room.InForce `json:"sanctions"`
	Acts      []decided      `json:"acts"` // of the audit that were on them, the newest first
}

// mostActs bounds the acts that are told of somebody.
const mostActs = 20

func (a *API) getPerson(_ http.ResponseWriter, r *http.Request, c call) (any, error) {
	user := r.PathValue("user")
	if err := protocol.CheckUser("user", user); err != nil {
		return nil, err
	}
	var out person
	if err := a.asStaff(r, c, func(rm *room.Room) *protocol.Error {
		out.Person, out.Sanctions = rm.Person(user), rm.Sanctions("", user, "", 2)
		return nil
	}); err != nil {
		return nil, err
	}
	for _, there := range ask[room.Person](r.Context(), a, AskPerson, c.room+"/"+user) {
		out.Join(there)
	}
	entries, _, err := a.entries(r, c, 0, maxListed)
	if err != nil {
		return nil, err
	}
	out.Acts = slices.DeleteFunc(entries, func(d decided) bool { return d.User != user })
	out.Acts = out.Acts[:min(len(out.Acts), mostActs)]
	return out, nil
}

// withRoom returns the room, as much of it as the caller may see.
func (a *API) withRoom(r *http.Request, c call) (any, error) {
	var info room.Info
	staff := speaks(c.caller, c.room)
	err := a.cfg.Hub.With(r.Context(), c.room, notCreated, func(rm *room.Room) *protocol.Error {
		staff = staff || c.known && c.Allows(c.room) && rm.MayModerate(c.identity()) == nil
		info = rm.Info()
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case staff:
		a.gather(r.Context(), &info)
		return a.detail(info), nil
	}
	return seen{listed{info.Summary, shown(info.Rates.TenSeconds)}, info.SlowModeMS, info.Pinned, info.Speech}, nil
}

// rates are what viewers may know of a room's pace: admitted per second, over the last ten seconds.
type rates struct {
	Danmaku float64 `json:"danmaku"`
	Gift    float64 `json:"gift"`
	Like    float64 `json:"like"`
}

func shown(r room.Rates) rates { return rates{r.Danmaku, r.Gift, r.Like} }

// listed is a room in a list.
type listed struct {
	room.Summary
	Rates rates `json:"rates"`
}

// seen is a room as anybody sees it.
type seen struct {
	listed
	SlowModeMS int64           `json:"slow_mode_ms"`
	Pinned     json.RawMessage `json:"pinned"`
	protocol.Speech
}

// detailed is a room as those see it who read or moderate it.
type detailed struct {
	room.Info
	Rates allRates   `json:"rates"`
	Show  *shownShow `json:"show,omitempty"`
	Quota []quota    `json:"quota"`
}

// allRates adds what was not admitted.
type allRates struct {
	rates
	Degraded float64 `json:"degraded"`
	Refused  float64 `json:"refused"`
}

// quota is one of the room's buckets, with the pace at which it fills.
type quota struct {
	room.Quota
	PerSecond float64 `json:"per_second"`
}

func (a *API) detail(i room.Info) detailed {
	r := i.Rates.TenSeconds
	d := detailed{Info: i, Rates: allRates{shown(r), r.Degraded, r.Refused}, Quota: make([]quota, len(i.Quota))}
	if len(i.Shows) > 0 {
		d.Show = showOf(i.Shows[0], false)
	}
	for n, q := range i.Quota {
		d.Quota[n] = quota{q, a.perSecond(q)}
	}
	return d
}

// perSecond is how fast a bucket fills at the size of audience that its burst belongs to.
func (a *API) perSecond(q room.Quota) float64 {
	rule, ok := a.cfg.Gate.Rules().Rule(q.Rule)
	if !ok {
		return 0
	}
	l := rule.Limit
	for _, tier := range rule.Tiers {
		if l = tier.Limit; l.Burst == q.Burst {
			break
		}
	}
	per := time.Duration(l.Per)
	if per == 0 {
		per = time.Second
	}
	return float64(l.Rate) / per.Seconds()
}

func (a *API) ratesOf(id string) rates {
	r, ok := a.cfg.Hub.Room(id)
	if !ok {
		return rates{}
	}
	return shown(r.Rates())
}
