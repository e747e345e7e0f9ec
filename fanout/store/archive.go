package store

import (
	"context"
	"fmt"
	"time"

	"liveroom/fanout/link"
	"liveroom/protocol"
)

// AuditLog keeps what moderators did.
type AuditLog struct{ *core }

// AuditRecord is something that a moderator did.
type AuditRecord struct {
	Seq   uint64
	Time  time.Time // when the store took it
	Entry []byte    // as [AuditLog.Audit] was given it
}

// Audit keeps a record of what somebody did in a room, for 90 days and the newest 1,000 of each room. ErrUnknown when
// the store did not answer in time, ErrRefused when nothing was stored. It returns the record's number, 1 or more.
func (a *AuditLog) Audit(ctx context.Context, room string, entry []byte) (uint64, error) {
	if err := a.mayStore(link.RoadAudit); err != nil {
		return 0, err
	}
	ctx, cancel := a.link.Bounded(ctx)
	defer cancel()
	ack, err := a.link.JS.Publish(ctx, link.AuditPrefix+protocol.Token(room), entry)
	if err != nil {
		return 0, fmt.Errorf("%w: audit of room %s: %w", storeFailure(err), room, err)
	}
	return ack.Sequence, nil
}

// Audited returns the room's record with a number; nil when it has none, or no more.
func (a *AuditLog) Audited(ctx context.Context, room string, seq uint64) ([]byte, error) {
	got, err := a.link.Read(ctx, link.AuditStream, link.Ask{Seq: seq, Next: link.AuditPrefix + protocol.Token(room), Batch: 1})
	if err != nil || len(got) == 0 || got[0].Seq != seq {
		return nil, err
	}
	return got[0].Data, nil
}

// AuditOf returns at most limit records of the room (1 to 1000, else an error) older than the one numbered before (0: from
// the newest), newest first.
func (a *AuditLog) AuditOf(ctx context.Context, room string, before uint64, limit int) ([]AuditRecord, error) {
	if limit < 1 || limit > auditPerRoom {
		return nil, fmt.Errorf("audit of room %s: limit %d is not in 1 to %d", room, limit, auditPerRoom)
	}
	got, err := a.link.Read(ctx, link.AuditStream, link.Ask{Seq: 1, Next: link.AuditPrefix + protocol.Token(room), Batch: auditPerRoom})
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

// RecentLog keeps the danmaku of the last minutes.
type RecentLog struct{ *core }

// Recent returns the room's danmaku, oldest first: the newest limit of them (at least 1), within five minutes by the
// store's clock alone. The stream listens beside the path, so a danmaku that was delivered a
// moment ago may be missing.
func (d *RecentLog) Recent(ctx context.Context, room string, limit int) ([][]byte, error) {
	if limit < 1 {
		return nil, fmt.Errorf("recent danmaku of room %s: limit %d is less than 1", room, limit)
	}
	got, err := d.link.Read(ctx, link.RecentStream, link.Ask{
		Next: link.RoomSubject(room, protocol.ClassDanmaku.String()), Batch: recentPerRoom, Seq: 1,
	})
	if err != nil {
		return nil, err
	}
	got = got[max(0, len(got)-limit):]
	events := make([][]byte, len(got))
	for i, r := range got {
		events[i] = r.Data
	}
	return events, nil
}

// RecentOfAll is [RecentLog.Recent] for all rooms: the newest limit danmaku, oldest first.
func (d *RecentLog) RecentOfAll(ctx context.Context, limit int) ([][]byte, error) {
	info, err := d.link.StreamInfo(ctx, link.RecentStream)
	if err != nil {
		return nil, err
	}
	first := info.State.FirstSeq
	if last := info.State.LastSeq; last > first+uint64(limit) {
		first = last - uint64(limit) + 1
	}
	got, err := d.link.Read(ctx, link.RecentStream, link.Ask{Next: link.AnyRoomSubject("*", protocol.ClassDanmaku.String()), Batch: limit, Seq: max(first, 1)})
	if err != nil {
		return nil, err
	}
	events := make([][]byte, len(got))
	for i, r := range got {
		events[i] = r.Data
	}
	return events, nil
}
