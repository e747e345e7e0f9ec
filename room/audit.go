package room

import (
	"context"
	"encoding/json"

	"liveroom/protocol"
)

// AuditEntry is one decision of somebody about a room, as the bus keeps it.
type AuditEntry struct {
	Time    int64         `json:"time"` // Unix ms
	By      string        `json:"by"`   // a user
	Role    protocol.Role `json:"role"`
	Action  string        `json:"action"` // of op moderate, or "settings"
	User    string        `json:"user,omitempty"`
	Seconds int           `json:"seconds,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	MID     string        `json:"mid,omitempty"`
	Text    string        `json:"text,omitempty"`
}

// Audit remembers what somebody has decided about the room. The decision holds already, so a failure is the operator's to
// hear of and not the moderator's.
func (r *Room) Audit(ctx context.Context, e AuditEntry) {
	ctx, cancel := context.WithTimeout(ctx, r.hub.cfg.OpenTimeout)
	defer cancel()
	e.Time = r.hub.cfg.Now().UnixMilli()
	raw, err := json.Marshal(e)
	if err == nil {
		err = r.hub.bus.Audit(ctx, r.id, raw)
	}
	if err != nil {
		r.hub.troubled("decision is not in the audit", r.id, err)
	}
}
