package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
)

// Rules keeps the sets of limits.
type Rules struct {
	*core
	newest atomic.Pointer[link.Record] // that this node has met
}

// RulesRecord is one set of limits as the store keeps it.
type RulesRecord struct {
	Version uint64 // grows by one with each set, from 1
	Payload []byte // what [Rules.PublishRules] was given
	Time    time.Time
	Node    string // that published it, "" when unknown
}

func rulesRecord(r link.Record) RulesRecord { return RulesRecord{r.Seq, r.Data, r.Time, r.Node} }

// PublishRules stores a set of limits if the newest stored one is still of version after (0: there is none), and returns
// the new one's version. All nodes hear of it, see [Rules.FollowRules]. ErrConflict when somebody was faster,
// ErrUnknown when the store did not answer, ErrRefused when nothing was stored.
func (k *Rules) PublishRules(ctx context.Context, payload []byte, after uint64) (uint64, error) {
	return k.publish(ctx, link.Record{Data: payload, Node: k.cfg.NodeID}, after)
}

func (k *Rules) publish(ctx context.Context, r link.Record, after uint64) (uint64, error) {
	m := &nats.Msg{Subject: link.RulesSubject, Data: r.Data, Header: r.Header()}
	ack, err := k.put(ctx, link.RoadRules, m, jetstream.WithExpectStream(link.RulesStream), jetstream.WithExpectLastSequence(after))
	if err != nil {
		return 0, fmt.Errorf("limits after version %d: %w", after, err)
	}
	r.Seq = ack.Sequence
	k.marks.met(link.RulesStream, ack.Sequence)
	k.know(r)
	return ack.Sequence, nil
}

// know keeps the newest set, for a store that comes back without it.
func (k *Rules) know(r link.Record) {
	k.here.rules.meet(r.Seq)
	for old := k.newest.Load(); old == nil || r.Seq > old.Seq; old = k.newest.Load() {
		if k.newest.CompareAndSwap(old, &r) {
			return
		}
	}
}

// RulesNow is the store's clock, by which [RulesRecord.Time] is told.
func (k *Rules) RulesNow(ctx context.Context) (time.Time, error) {
	info, err := k.link.StreamInfo(ctx, link.RulesStream)
	if err != nil {
		return time.Time{}, err
	}
	return info.TimeStamp, nil
}

// RulesHistory returns at most limit sets (1 to 1000, else an error) older than version before (0: from the newest),
// newest first. The store keeps the last 1000.
func (k *Rules) RulesHistory(ctx context.Context, before uint64, limit int) ([]RulesRecord, error) {
	if limit < 1 || limit > rulesKept {
		return nil, fmt.Errorf("history of limits: limit %d is not in 1 to %d", limit, rulesKept)
	}
	if before == 0 {
		newest, err := k.lastVersion(ctx)
		if err != nil || newest == 0 {
			return nil, err
		}
		before = newest + 1
	}
	first := uint64(1)
	if before > uint64(limit) {
		first = before - uint64(limit)
	}
	got, err := k.link.Read(ctx, link.RulesStream, link.Ask{Seq: first, Next: link.RulesSubject, Batch: limit})
	if err != nil {
		return nil, err
	}
	var out []RulesRecord
	for i := len(got) - 1; i >= 0; i-- {
		if r := got[i]; r.Seq < before {
			out = append(out, rulesRecord(r))
		}
	}
	return out, nil
}

// lastVersion is that of the newest set ever stored, 0 when there was none. It may be gone: a damaged block on a disk takes
// its messages along, and those before them are still there to go back to.
func (k *Rules) lastVersion(ctx context.Context) (uint64, error) {
	info, err := k.link.StreamInfo(ctx, link.RulesStream)
	if err != nil {
		return 0, fmt.Errorf("%w: limits: %w", storeFailure(err), err)
	}
	return info.State.LastSeq, nil
}

// FollowRules calls h with the newest set, once at first and then whenever it is another one, until stop is called.
// The calls come one after the other. A set that was published and replaced between two looks is skipped. News travel
// at once; a look at the store in each period finds what was lost on the way.
func (k *Rules) FollowRules(h func(RulesRecord)) (stop func(), err error) {
	r := &link.Reader{Link: k.link, Stream: link.RulesStream, Subject: link.RulesSubject, Newest: true, Take: func(m link.Record) {
		if known := k.newest.Load(); known != nil && known.Outdates(m) {
			k.LookAfter() // which writes the newer one over it
			return
		}
		k.know(m)
		h(rulesRecord(m))
	}}
	w := k.link.Follow(link.FollowRules, r.Read)
	if err := w.Hear(link.RulesNewsSubject); err != nil {
		return nil, err
	}
	_ = w.LookOnce(context.Background()) // its loop looks again
	return w.Start(), nil
}

// restore writes the newest set that this node knows.
func (k *Rules) restore(ctx context.Context) error {
	newest := func() link.Record {
		if r := k.newest.Load(); r != nil {
			return *r
		}
		return link.Record{}
	}
	return k.restoreNewest(ctx, link.RulesStream, link.RulesSubject, newest, func(r link.Record, _, last uint64) error {
		_, err := k.publish(ctx, r, last)
		return err
	})
}
