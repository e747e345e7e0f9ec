package fanout

import (
	"context"
	"fmt"
	"time"

	"liveroom/protocol"
)

const auditPrefix = "lr.audit."

// AuditRecord is something that a moderator did.
type AuditRecord struct {
	Seq   uint64
	Time  time.Time // when the store took it
	Entry []byte    // as [Fabric.Audit] was given it
}

// Audit keeps a record of what somebody did in a room, for 90 days and the newest 1,000 of each room. ErrUnknown when
// the store did not answer in time, ErrRefused when nothing was stored.
func (f *Fabric) Audit(ctx context.Context, room string, entry []byte) error {
	if err := f.mayStore(roadAudit); err != nil {
		return err
	}
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	if _, err := f.js.Publish(ctx, auditPrefix+protocol.Token(room), entry); err != nil {
		return fmt.Errorf("%w: audit of room %s: %w", storeFailure(err), room, err)
	}
	return nil
}

// AuditOf returns at most limit records of the room (1 to 1000, else an error) older than the one numbered before (0: from
// the newest), newest first.
func (f *Fabric) AuditOf(ctx context.Context, room string, before uint64, limit int) ([]AuditRecord, error) {
	if limit < 1 || limit > auditPerRoom {
		return nil, fmt.Errorf("audit of room %s: limit %d is not in 1 to %d", room, limit, auditPerRoom)
	}
	got, err := f.read(ctx, auditStream, directGet{Seq: 1, Next: auditPrefix + protocol.Token(room), Batch: auditPerRoom})
	if err != nil {
		return nil, err
	}
	var out []AuditRecord
	for i := len(got) - 1; i >= 0 && len(out) < limit; i-- {
		if r := got[i]; before == 0 || r.Seq < before {
			out = append(out, AuditRecord{r.Seq, r.Time, r.Data})
		}
	}
	return out, nil
}
