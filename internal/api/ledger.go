package api

import (
	"encoding/json"
	"fmt"
	"net/http"

	"liveroom/protocol"
)

// giftPage is a page of the ledger. Ledger names it: a seq says nothing in another one.
type giftPage struct {
	Ledger string            `json:"ledger,omitempty"`
	Gifts  []json.RawMessage `json:"gifts"`
}

func (a *API) listGifts(w http.ResponseWriter, r *http.Request, c call) {
	after, limit, ok := a.page(w, r, "after")
	if !ok {
		return
	}
	out := giftPage{Ledger: a.ledger.LedgerID()}
	of := r.URL.Query().Get("ledger")
	stored, fault := a.ledger.Gifts(r.Context(), c.room, after, limit)
	end := after
	if fault == nil && (len(stored) == 0 && after > 0 || otherLedger(of, out.Ledger)) {
		end, fault = a.ledger.GiftsEnd(r.Context(), c.room)
	}
	switch {
	case fault != nil:
		a.log.Warn("gifts not read", "room", c.room, "err", fault)
		a.refuse(w, r, &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: ledgerRetry})
	case otherLedger(of, out.Ledger):
		a.strayed(w, r, out.Ledger, end, fmt.Sprintf("the ledger is %s, not %.64q", out.Ledger, of))
	case end < after && (end > 0 || of == ""): // of a ledger known to be the same, all may have aged out
		a.strayed(w, r, out.Ledger, end, fmt.Sprintf("after=%d is beyond the room's last gift, seq %d", after, end))
	default:
		out.Gifts = make([]json.RawMessage, len(stored))
		for i, g := range stored {
			out.Gifts[i] = protocol.AppendStoredGift(nil, g)
		}
		a.write(w, r, out)
	}
}

// otherLedger reports whether a reader's ledger is known to be another than the one in use.
func otherLedger(readers, inUse string) bool { return readers != "" && inUse != "" && readers != inUse }

// strayed tells a reader whose place is in no part of this ledger where that ends, for it to start over.
func (a *API) strayed(w http.ResponseWriter, r *http.Request, ledger string, end uint64, why string) {
	const code = protocol.Conflict
	a.writeStatus(w, r, int(code), struct {
		Code   protocol.Code   `json:"code"`
		Reason protocol.Reason `json:"reason"`
		Msg    string          `json:"msg"`
		Ledger string          `json:"ledger,omitempty"`
		Last   uint64          `json:"last_seq"`
	}{code, protocol.ReasonConflict, why + ": start over with after=0", ledger, end})
}
