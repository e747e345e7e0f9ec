package api

import (
	"context"
	"encoding/json"
	"net/http"

	"liveroom/protocol"
	"liveroom/room"
)

// Audit reads who decided what about rooms.
type Audit interface {
	// AuditOf returns at most limit (1 to 1000) entries of the room older than the one numbered before (0: from the
	// newest), newest first.
	AuditOf(ctx context.Context, room string, before uint64, limit int) ([]Audited, error)
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

func (a *API) listAudit(w http.ResponseWriter, r *http.Request, c call) {
	before, limit, ok := a.page(w, r, "before")
	if !ok {
		return
	}
	kept, fault := a.audit.AuditOf(r.Context(), c.room, before, limit)
	if fault != nil {
		a.log.Warn("audit not read", "room", c.room, "err", fault)
		a.refuse(w, r, &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: ledgerRetry})
		return
	}
	out := struct {
		Entries []decided `json:"entries"`
	}{Entries: make([]decided, 0, len(kept))}
	for _, k := range kept {
		d := decided{Seq: k.Seq}
		if err := json.Unmarshal(k.Entry, &d.AuditEntry); err != nil {
			a.log.Warn("an entry of the audit can't be read", "room", c.room, "err", err)
			continue
		}
		out.Entries = append(out.Entries, d)
	}
	a.write(w, r, out)
}
