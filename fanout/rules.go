package fanout

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// RulesRecord is one set of limits as the store keeps it.
type RulesRecord struct {
	Version uint64 // grows by one with each set, from 1
	Payload []byte // what [Fabric.PublishRules] was given
	Time    time.Time
	Node    string // that published it, "" when unknown
}

// PublishRules stores a set of limits if the newest stored one is still of version after (0: there is none), and returns
// the new one's version. All nodes hear of it, see [Fabric.FollowRules]. ErrConflict when somebody was faster,
// ErrUnknown when the store did not answer, ErrRefused when nothing was stored.
func (f *Fabric) PublishRules(ctx context.Context, payload []byte, after uint64) (uint64, error) {
	return f.publishRules(ctx, record{Data: payload, Node: f.cfg.NodeID}, after)
}

func (f *Fabric) publishRules(ctx context.Context, r record, after uint64) (uint64, error) {
	if err := f.mayStore(roadRules); err != nil {
		return 0, err
	}
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	m := &nats.Msg{Subject: rulesSubject, Data: r.Data, Header: r.header()}
	ack, err := f.js.PublishMsg(ctx, m, jetstream.WithExpectStream(rulesStream), jetstream.WithExpectLastSequence(after), jetstream.WithRetryAttempts(0))
	switch {
	case err == nil:
		f.knowRules(record{Seq: ack.Sequence, Data: r.Data, Origin: r.Origin, Node: r.Node})
		f.marks.met(rulesStream, ack.Sequence)
		return ack.Sequence, nil
	case apiCode(err) == jetstream.JSErrCodeStreamWrongLastSequence:
		return 0, fmt.Errorf("%w: limits are not at version %d", ErrConflict, after)
	default:
		return 0, fmt.Errorf("%w: limits: %w", storeFailure(err), err)
	}
}

// knowRules keeps the newest set, for a store that comes back without it.
func (f *Fabric) knowRules(r record) {
	f.known.rules.meet(r.Seq)
	for old := f.rules.Load(); old == nil || r.Seq > old.Seq; old = f.rules.Load() {
		if f.rules.CompareAndSwap(old, &r) {
			return
		}
	}
}

func rulesRecord(r record) RulesRecord { return RulesRecord{r.Seq, r.Data, r.Time, r.Node} }

// LastRules returns the newest set, false when there is none yet.
func (f *Fabric) LastRules(ctx context.Context) (RulesRecord, bool, error) {
	r, ok, err := f.last(ctx, rulesStream, rulesSubject)
	return rulesRecord(r), ok, err
}

// RulesNow is the store's clock, by which [RulesRecord.Time] is told.
func (f *Fabric) RulesNow(ctx context.Context) (time.Time, error) {
	return f.storeNow(ctx, rulesStream)
}

// Rules returns the set of a version, ErrNotFound when there is none, or no longer.
func (f *Fabric) Rules(ctx context.Context, version uint64) (RulesRecord, error) {
	got, err := f.RulesHistory(ctx, version+1, 1)
	if err != nil {
		return RulesRecord{}, err
	}
	if len(got) == 0 || got[0].Version != version {
		return RulesRecord{}, ErrNotFound
	}
	return got[0], nil
}

// RulesHistory returns at most limit sets (1 to 1000, else an error) older than version before (0: from the newest),
// newest first. The store keeps the last 1000.
func (f *Fabric) RulesHistory(ctx context.Context, before uint64, limit int) ([]RulesRecord, error) {
	if limit < 1 || limit > rulesKept {
		return nil, fmt.Errorf("history of limits: limit %d is not in 1 to %d", limit, rulesKept)
	}
	if before == 0 {
		newest, ok, err := f.LastRules(ctx)
		if err == nil && !ok {
			newest.Version, err = f.lastVersion(ctx)
		}
		if err != nil || newest.Version == 0 {
			return nil, err
		}
		before = newest.Version + 1
	}
	first := uint64(1)
	if before > uint64(limit) {
		first = before - uint64(limit)
	}
	got, err := f.read(ctx, rulesStream, directGet{Seq: first, Next: rulesSubject, Batch: limit})
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
func (f *Fabric) lastVersion(ctx context.Context) (uint64, error) {
	info, err := f.streamInfo(ctx, rulesStream)
	if err != nil {
		return 0, fmt.Errorf("%w: limits: %w", storeFailure(err), err)
	}
	return info.State.LastSeq, nil
}

// FollowRules calls h with the newest set, once at first and then whenever it is another one, until stop is called.
// The calls come one after the other. A set that was published and replaced between two looks is skipped. News travel
// at once; a look at the store every [Config.FollowEvery] finds what was lost on the way.
func (f *Fabric) FollowRules(h func(RulesRecord)) (stop func(), err error) {
	r := &reader{f: f, stream: rulesStream, subject: rulesSubject, newest: true, take: func(m record) {
		if known := f.rules.Load(); known != nil && known.outdates(m) {
			f.lookAfterStreams() // which writes the newer one over it
			return
		}
		f.knowRules(m)
		h(rulesRecord(m))
	}}
	w := f.lookOften(FollowRules, r.read)
	sub, err := f.live.Subscribe(rulesNewsSubject, func(*nats.Msg) { w.news.soon() })
	if err != nil {
		return nil, fmt.Errorf("subscribe to limits: %w", err)
	}
	_ = w.lookOnce(context.Background()) // its loop looks again
	return w.start(sub), nil
}
