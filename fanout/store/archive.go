package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

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

// AuditPage is a part of a room's records.
type AuditPage struct {
	Records []AuditRecord // the newest first
	Dropped uint64        // older ones that were kept once and are no more, for age or number
	Since   time.Time     // of the oldest that is kept, where some were dropped
}

// auditAttempts is how often a record is counted anew, if others were faster.
const auditAttempts = 16

// Audit keeps a record of what somebody did in a room, for 90 days and the newest 1,000 of each room: those that make place are counted, and told
// to the log once. ErrUnknown when the store did not answer in time, ErrRefused when nothing was stored. It returns the record's number, 1 or more.
func (a *AuditLog) Audit(ctx context.Context, room string, entry []byte) (uint64, error) {
	subject := link.AuditPrefix + protocol.Token(room)
	var err error
	for range auditAttempts {
		if err = a.mayStore(link.RoadAudit); err != nil {
			return 0, err
		}
		var last, oldest link.Record
		if last, oldest, err = a.ends(ctx, subject); err != nil {
			break
		}
		m := &nats.Msg{Subject: subject, Data: entry, Header: nats.Header{link.NthHeader: {fmt.Sprint(last.Nth + 1)}}}
		var ack *jetstream.PubAck
		if ack, err = a.put(ctx, link.RoadAudit, m, jetstream.WithExpectLastSequencePerSubject(last.Seq)); err == nil {
			if last.Nth >= auditPerRoom && last.Nth-oldest.Nth+1 >= auditPerRoom {
				a.metrics.auditDropped.Inc()
				if oldest.Nth == 1 {
					a.log.Warn("the audit of a room has its most entries; its oldest go from now on", "room", room, "entries", auditPerRoom)
				}
			}
			return ack.Sequence, nil
		}
		if !errors.Is(err, ErrConflict) {
			break
		}
	}
	return 0, fmt.Errorf("audit of room %s: %w", room, err)
}

// ends returns a room's newest record, zero for none, and, where there may be too many, its oldest. Those of a version that did not count them are
// counted here.
func (a *AuditLog) ends(ctx context.Context, subject string) (last, oldest link.Record, err error) {
	last, ok, err := a.link.Last(ctx, link.AuditStream, subject)
	if err != nil || !ok {
		return last, last, err
	}
	most := 1
	if last.Nth == 0 {
		most = auditPerRoom
	} else if last.Nth < auditPerRoom {
		return last, oldest, nil
	}
	got, err := a.link.Read(ctx, link.AuditStream, link.Ask{Seq: 1, Next: subject, Batch: most})
	if err != nil || len(got) == 0 {
		return last, oldest, err
	}
	if oldest = got[0]; last.Nth == 0 {
		last.Nth, oldest.Nth = uint64(len(got)), 1
	}
	return last, oldest, nil
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
func (a *AuditLog) AuditOf(ctx context.Context, room string, before uint64, limit int) (page AuditPage, err error) {
	if limit < 1 || limit > auditPerRoom {
		return page, fmt.Errorf("audit of room %s: limit %d is not in 1 to %d", room, limit, auditPerRoom)
	}
	got, err := a.toldAll(a.link.Read(ctx, link.AuditStream, link.Ask{Seq: 1, Next: link.AuditPrefix + protocol.Token(room), Batch: auditPerRoom}))
	if err != nil || len(got) == 0 {
		return page, err
	}
	if all := got[len(got)-1].Nth; all > uint64(len(got)) {
		page.Dropped, page.Since = all-uint64(len(got)), got[0].Time
	}
	for i := len(got) - 1; i >= 0 && len(page.Records) < limit; i-- {
		if r := got[i]; before == 0 || r.Seq < before {
			page.Records = append(page.Records, AuditRecord{r.Seq, r.Time, r.Data})
		}
	}
	return page, nil
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
	var got []link.Record
	var err error
	if d.oneLog() {
		got, err = d.lately(ctx, room)
	} else {
		got, err = d.link.Read(ctx, link.RecentStream, link.Ask{
			Next: link.RoomSubject(room, protocol.ClassDanmaku.String()), Batch: recentPerRoom, Seq: 1,
		})
	}
	if err != nil {
		return nil, err
	}
	got = got[max(0, len(got)-limit):]
	events := make([][]byte, len(got))
	for i, r := range got {
		events[i] = d.told(r.Data)
	}
	return events, nil
}

// RecentOfAll is [RecentLog.Recent] for all rooms: the newest limit danmaku, oldest first.
func (d *RecentLog) RecentOfAll(ctx context.Context, limit int) ([][]byte, error) {
	stream, subject, most := link.RecentStream, link.AnyRoomSubject("*", protocol.ClassDanmaku.String()), limit
	if d.oneLog() { // where other things are between them
		stream, subject, most = link.EventsStream, link.SaidPrefix+"*", 4*limit
	}
	info, err := d.link.StreamInfo(ctx, stream)
	if err != nil {
		return nil, err
	}
	first := info.State.FirstSeq
	if last := info.State.LastSeq; last > first+uint64(most) {
		first = last - uint64(most) + 1
	}
	got, err := d.link.Read(ctx, stream, link.Ask{Next: subject, Batch: most, Seq: max(first, 1)})
	if err != nil {
		return nil, err
	}
	if oldest := info.TimeStamp.Add(-recentAge); d.oneLog() {
		got = slices.DeleteFunc(got, func(r link.Record) bool { return !shownToAll(r.Data) || r.Time.Before(oldest) })
		got = got[max(0, len(got)-limit):]
	}
	events := make([][]byte, len(got))
	for i, r := range got {
		events[i] = d.told(r.Data)
	}
	return events, nil
}

const (
	// latelyMost is how much of a room is read at once.
	latelyMost = 5 * recentPerRoom
	// latelyTries bounds how often it is looked how far back that goes.
	latelyTries = 20
)

// lately reads the newest danmaku from the log of all that was said. There is no reading backwards: of a busy room it is searched since when there
// are more than enough and not more than one reading brings.
func (d *RecentLog) lately(ctx context.Context, room string) (newest []link.Record, err error) {
	least, most, back := time.Duration(0), recentAge, recentAge // since least there are too few, since most too many
	now := time.Now()                                           // one for all tries: what is between two windows must not move
	for range latelyTries {
		start := now.Add(-back)
		got, err := d.link.Read(ctx, link.EventsStream, link.Ask{Next: link.SaidPrefix + protocol.Token(room), Start: &start, Batch: latelyMost})
		if err != nil {
			return nil, err
		}
		if len(got) < latelyMost {
			got = slices.DeleteFunc(got, func(r link.Record) bool { return !shownToAll(r.Data) })
			newest, least = got[max(0, len(got)-recentPerRoom):], back
			if back == recentAge || len(newest) == recentPerRoom {
				break
			}
		} else {
			most = back
		}
		if back = (least + most) / 2; least == 0 {
			back = most / 8
		}
	}
	return newest, nil
}

// shownToAll reports whether an event of the log is a danmaku that others than its sender were shown.
func shownToAll(event []byte) bool {
	return bytes.HasPrefix(event, []byte(`{"ev":"danmaku"`)) && !bytes.Contains(event, []byte(`,"hidden":true`)) // no text has these bytes in JSON
}
