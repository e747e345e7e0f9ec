package api

import (
	"crypto/rand"
	"net/http"
	"time"

	"liveroom/protocol"
	"liveroom/room"
)

// ledgerRetry is the wait told when the ledger does not answer.
const ledgerRetry = time.Second

type moderateBody struct {
	ID      string          `json:"id"`
	Action  protocol.Action `json:"action"`
	User    string          `json:"user"`
	Seconds int             `json:"seconds"`
	Reason  string          `json:"reason"`
	MID     string          `json:"mid"`
	Text    string          `json:"text"`
}

func (a *API) postModerate(w http.ResponseWriter, r *http.Request, c call) {
	var b moderateBody
	if err := decode(w, r, &b); err != nil {
		a.refuse(w, r, err)
		return
	}
	if b.ID == "" {
		b.ID = rand.Text()[:16] // the memory of first answers needs one; the caller asked for no idempotency
	}
	req := protocol.Request{
		Op: protocol.OpModerate, ID: b.ID, Action: b.Action, User: b.User, Seconds: b.Seconds, Reason: b.Reason, MID: b.MID, Text: b.Text,
	}
	if err := reshape(&req); err != nil {
		a.answer(w, r, protocol.Refuse(req.ID, err))
		return
	}
	who := room.Identity{User: c.User, Name: c.Name, Role: c.Role}
	a.answer(w, r, a.hub.Speak(r.Context(), c.room, room.Caller{Who: who, Addr: a.clientAddr(r), Create: notCreated}, &req))
}
