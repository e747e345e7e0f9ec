package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"liveroom/protocol"
	"liveroom/room"
)

// giftPage is a page of the ledger. Ledger names it: a seq says nothing in another one.
type giftPage struct {
	Ledger string            `json:"ledger,omitempty"`
	Gifts  []json.RawMessage `json:"gifts"`
}

func (a *API) ledgerCalls() []route {
	return []route{
		{http.MethodGet, "/rooms/{room}/audit", knows, a.listAudit},
		{http.MethodGet, "/rooms/{room}/gifts", speaks, a.listGifts},
	}
}

func (a *API) listGifts(_ http.ResponseWriter, r *http.Request, c call) (any, error) {
	after, limit, err := page(r, "after", maxListed, defaultListed)
	if err != nil {
		return nil, err
	}
	out := giftPage{Ledger: a.cfg.Ledger.LedgerID()}
	of := r.URL.Query().Get("ledger")
	stored, fault := a.cfg.Ledger.Gifts(r.Context(), c.room, after, limit)
	end := after
	if fault == nil && (len(stored) == 0 && after > 0 || otherLedger(of, out.Ledger)) {
		end, fault = a.cfg.Ledger.GiftsEnd(r.Context(), c.room)
	}
	switch {
	case fault != nil:
		return nil, storeError{fmt.Errorf("read gifts: %w", fault)}
	case otherLedger(of, out.Ledger):
		return strayed(out.Ledger, end, fmt.Sprintf("the ledger is %s, not %.64q", out.Ledger, of)), nil
	case end < after && (end > 0 || of == ""): // of a ledger known to be the same, all may have aged out
		return strayed(out.Ledger, end, fmt.Sprintf("after=%d is beyond the room's last gift, seq %d", after, end)), nil
	}
	out.Gifts = make([]json.RawMessage, len(stored))
	for i, g := range stored {
		out.Gifts[i] = protocol.AppendLedgerGift(nil, g)
	}
	return out, nil
}

// otherLedger reports whether a reader's ledger is known to be another than the one in use.
func otherLedger(readers, inUse string) bool { return readers != "" && inUse != "" && readers != inUse }

// strayed tells a reader whose place is in no part of this ledger where that ends, for it to start over.
func strayed(ledger string, end uint64, why string) reply {
	const code = protocol.Conflict
	return reply{int(code), struct {
		Code   protocol.Code   `json:"code"`
		Reason protocol.Reason `json:"reason"`
		Msg    string          `json:"msg"`
		Ledger string          `json:"ledger,omitempty"`
		Last   uint64          `json:"last_seq"`
	}{code, protocol.ReasonConflict, why + ": start over with after=0", ledger, end}}
}

// Audit reads who decided what about rooms.
type Audit interface {
	// AuditOf returns at most limit (1 to 1000) entries of the room older than the one numbered before (0: from the
	// newest), newest first.
	AuditOf(ctx context.Context, room string, before uint64, limit int) (AuditPage, error)
}

// AuditPage is a part of a room's audit.
type AuditPage struct {
	Entries []Audited // the newest first
	Dropped uint64    // older ones that are kept no more
	Since   int64     // of the oldest that is kept, Unix ms, where some were dropped
}

// Audited is a kept [room.AuditEntry].
type Audited struct {
	Seq   uint64
	Entry []byte
}

// decided is an entry with its number.
type decided struct {
	Seq uint64 `json:"seq"`
	room.AuditEntry
}

func (a *API) listAudit(_ http.ResponseWriter, r *http.Request, c call) (any, error) {
	before, limit, err := page(r, "before", maxListed, defaultListed)
	if err != nil {
		return nil, err
	}
	if !speaks(c.caller, c.room) {
		if err := a.asStaff(r, c, func(*room.Room) *protocol.Error { return nil }); err != nil {
			return nil, err
		}
	}
	out := struct {
		Entries []decided `json:"entries"`
		Dropped uint64    `json:"dropped,omitempty"`
		Since   int64     `json:"kept_since,omitempty"`
	}{}
	entries, kept, fault := a.entries(r, c, before, limit)
	out.Entries, out.Dropped, out.Since = entries, kept.Dropped, kept.Since
	return out, fault
}

// entries reads the audit of the call's room, the newest first.
func (a *API) entries(r *http.Request, c call, before uint64, limit int) ([]decided, AuditPage, error) {
	kept, err := a.cfg.Audit.AuditOf(r.Context(), c.room, before, limit)
	if err != nil {
		return nil, kept, storeError{fmt.Errorf("read the audit: %w", err)}
	}
	out := make([]decided, 0, len(kept.Entries))
	for _, k := range kept.Entries {
		d := decided{Seq: k.Seq}
		if err := json.Unmarshal(k.Entry, &d.AuditEntry); err != nil {
			a.cfg.Log.Warn("an entry of the audit can't be read", "room", c.room, "err", err)
			continue
		}
		out = append(out, d)
	}
	return out, kept, nil
}
