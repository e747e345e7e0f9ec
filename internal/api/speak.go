package api

import (
	"encoding/json"
	"net/http"
	"strings"

	"liveroom/protocol"
	"liveroom/room"
)

// speaker is the user that a service speaks for.
type speaker struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// body of the three calls that speak for a user; which fields count depends on the call.
type danmakuBody struct {
	User  *speaker      `json:"user"`
	ID    string        `json:"id"`
	Text  string        `json:"text"`
	Color string        `json:"color"`
	Mode  protocol.Mode `json:"mode"`
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

func (a *API) postDanmaku(w http.ResponseWriter, r *http.Request, c call) {
	var b danmakuBody
	if err := decode(w, r, &b); err != nil {
		a.refuse(w, r, err)
		return
	}
	a.speak(w, r, c, b.User, protocol.Request{Op: protocol.OpDanmaku, ID: b.ID, Text: b.Text, Color: b.Color, Mode: b.Mode})
}

func (a *API) postGift(w http.ResponseWriter, r *http.Request, c call) {
	b := giftBody{Count: 1}
	if err := decode(w, r, &b); err != nil {
		a.refuse(w, r, err)
		return
	}
	a.speak(w, r, c, b.User, protocol.Request{Op: protocol.OpGift, ID: b.ID, Gift: b.Gift, Count: b.Count})
}

func (a *API) postLikes(w http.ResponseWriter, r *http.Request, c call) {
	b := likesBody{Count: 1}
	if err := decode(w, r, &b); err != nil {
		a.refuse(w, r, err)
		return
	}
	a.speak(w, r, c, b.User, protocol.Request{Op: protocol.OpLike, ID: b.ID, Count: b.Count})
}

// speak brings the request into the shape that a socket's frame has, so that both are held to the same rules, and hands
// it to the room in the user's name.
func (a *API) speak(w http.ResponseWriter, r *http.Request, c call, user *speaker, req protocol.Request) {
	if user == nil {
		a.refuse(w, r, protocol.BadField("user", `an object with "id" and "name"`, "nothing"))
		return
	}
	if err := checkSpeaker(user); err != nil {
		a.refuse(w, r, err)
		return
	}
	if err := reshape(&req); err != nil {
		a.answer(w, r, protocol.Refuse(req.ID, err))
		return
	}
	addr := a.clientAddr(r)
	who := room.Identity{User: user.ID, Name: protocol.CleanName(user.Name, user.ID), Role: protocol.RoleViewer}
	a.answer(w, r, a.hub.Speak(r.Context(), c.room, room.Caller{
		Who: who, Create: func() *protocol.Error { return a.create(addr) },
	}, &req))
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
