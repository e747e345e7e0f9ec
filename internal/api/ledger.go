package api

import (
	"encoding/json"
	"net/http"

	"liveroom/protocol"
)

func (a *API) listGifts(w http.ResponseWriter, r *http.Request, c call) {
	after, limit, ok := a.page(w, r, "after")
	if !ok {
		return
	}
	stored, fault := a.ledger.Gifts(r.Context(), c.room, after, limit)
	if fault != nil {
		a.log.Warn("gifts not read", "room", c.room, "err", fault)
		a.refuse(w, r, &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: ledgerRetry})
		return
	}
	out := struct {
		Gifts []json.RawMessage `json:"gifts"`
	}{Gifts: make([]json.RawMessage, len(stored))}
	for i, g := range stored {
		out.Gifts[i] = protocol.AppendStoredGift(nil, g)
	}
	a.write(w, r, out)
}
