package api

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"

	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room"
)

// speaker is the user that a service speaks for.
type speaker struct {
	ID   string `json:"id"`
	Name string `json:"name"`

	Attrs map[string]json.RawMessage `json:"attrs"`
}

// body of the three calls that speak for a user; which fields count depends on the call.
type danmakuBody struct {
	User  *speaker      `json:"user"`
	ID    string        `json:"id"`
	Text  string        `json:"text"`
	Color string        `json:"color"`
	Mode  protocol.Mode `json:"mode"`
	Reply string        `json:"reply"`
}

type giftBody struct {
	User  *speaker `json:"user"`
	ID    string   `json:"id"`
	Gift  string   `json:"gift"`
	Count int      `json:"count"`
}

type likesBody struct {
	User  *speaker `json:"user"`
	ID    string   `json:"id"`
	Count int      `json:"count"`
}

func (a *API) speakCalls() []route {
	return []route{
		{http.MethodPost, "/rooms/{room}/danmaku", speaks, a.postDanmaku},
		{http.MethodPost, "/rooms/{room}/gifts", speaks, a.postGift},
		{http.MethodPost, "/rooms/{room}/likes", speaks, a.postLikes},
		{http.MethodPost, "/rooms/{room}/moderate", knows, a.postModerate},
	}
}

func (a *API) postDanmaku(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	var b danmakuBody
	if err := decode(w, r, &b); err != nil {
		return nil, err
	}
	return a.speak(r, c, b.User, protocol.Request{Op: protocol.OpDanmaku, ID: b.ID, Text: b.Text, Color: b.Color, Mode: b.Mode, Reply: b.Reply})
}

func (a *API) postGift(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	b := giftBody{Count: 1}
	if err := decode(w, r, &b); err != nil {
		return nil, err
	}
	return a.speak(r, c, b.User, protocol.Request{Op: protocol.OpGift, ID: b.ID, Gift: b.Gift, Count: b.Count})
}

func (a *API) postLikes(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	b := likesBody{Count: 1}
	if err := decode(w, r, &b); err != nil {
		return nil, err
	}
	return a.speak(r, c, b.User, protocol.Request{Op: protocol.OpLike, ID: b.ID, Count: b.Count})
}

// speak brings the request into the shape that a socket's frame has, so that both are held to the same rules, and hands
// it to the room in the user's name.
func (a *API) speak(r *http.Request, c call, user *speaker, req protocol.Request) (any, error) {
	if user == nil {
		return nil, protocol.BadField("user", `an object with "id" and "name"`, "nothing")
	}
	if err := checkSpeaker(user); err != nil {
		return nil, err
	}
	if err := reshape(&req); err != nil {
		return protocol.Refuse(req.ID, err), nil
	}
	attrs, err := protocol.ParseAttrs(user.Attrs, a.cfg.Attributes)
	if err != nil {
		err.Detail = "user." + err.Detail
		return nil, err
	}
	addr := a.cfg.ClientAddr(r)
	who := room.Identity{User: user.ID, Name: protocol.CleanName(user.Name, user.ID), Role: protocol.RoleViewer, Attrs: attrs, Traits: limit.NewTraits(string(attrs))}
	return a.cfg.Hub.Speak(r.Context(), c.room, room.Caller{Who: who, Create: func() *protocol.Error { return a.cfg.Create(addr) }}, &req), nil
}

// postModerate takes the frame of a socket without its op.
func (a *API) postModerate(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	var req protocol.Request
	if err := decode(w, r, &req); err != nil {
		return nil, err
	}
	return a.moderate(r, c, &req), nil
}

// moderate has the room judge an act, as a frame of the caller's socket. Only who moderates by the token makes a room by it.
func (a *API) moderate(r *http.Request, c call, req *protocol.Request) protocol.Ack {
	if req.Op = protocol.OpModerate; req.ID == "" {
		req.ID = rand.Text()[:16] // the memory of first answers needs one; the caller asked for no idempotency
	}
	if err := reshape(req); err != nil {
		return protocol.Refuse(req.ID, err)
	}
	create := notCreated
	if req.Action == protocol.ActionSettings && c.Moderates(c.room) {
		create = nil
	}
	return a.cfg.Hub.Speak(r.Context(), c.room, room.Caller{Who: c.identity(), Addr: a.cfg.ClientAddr(r), Create: create}, req)
}

// checkSpeaker keeps services from speaking for guests, whom only this server names.
func checkSpeaker(u *speaker) *protocol.Error {
	if err := protocol.CheckUser("user.id", u.ID); err != nil {
		return err
	}
	if strings.HasPrefix(u.ID, protocol.GuestPrefix) {
		return protocol.BadField("user.id", "an id that does not begin with "+protocol.GuestPrefix, u.ID)
	}
	return nil
}

// reshape checks req as a frame is checked.
func reshape(req *protocol.Request) *protocol.Error {
	frame, err := json.Marshal(req)
	if err != nil {
		return &protocol.Error{Reason: protocol.ReasonBadRequest}
	}
	return protocol.DecodeRequest(frame, req)
}
