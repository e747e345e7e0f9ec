package api

import (
	"encoding/json"
	"math"
	"net/http"

	"liveroom/protocol"
)

func (a *API) listGifts(w http.ResponseWriter, r *http.Request, c call) {
	after, err := number(r, "after", 0, math.MaxInt64, 0)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	limit, err := number(r, "limit", 1, maxListed, defaultListed)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	stored, fault := a.ledger.Gifts(r.Context(), c.room, after, int(limit))
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
