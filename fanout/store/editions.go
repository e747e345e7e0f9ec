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

// Editions keep what all nodes go by whole, one version after the other: the limits, the catalogue of gifts, and the platform's list of words.
type Editions struct {
	*core
	of     document
	newest atomic.Pointer[link.Record] // that this node has met
}

// document is where editions of one kind lie. Each has a stream of its own, whose sequences are the versions.
type document struct {
	what                  string // in errors
	stream, subject, news string
	road                  link.Road
	follow                string
	high                  *high
	kept                  int // the newest
	bytes                 int64
}

func (h *here) limits() document {
	return document{"limits", link.RulesStream, link.RulesSubject, link.RulesNewsSubject, link.RoadRules, link.FollowRules, &h.rules, editionsKept, editionsBytes}
}

func (h *here) gifts() document {
	return document{"catalogue", link.CatalogueStream, link.CatalogueSubject, link.CatalogueNewsSubject, link.RoadCatalogue, link.FollowCatalogue, &h.catalogue, editionsKept, editionsBytes}
}

func (h *here) words() document {
	return document{"filter", link.FilterStream, link.FilterSubject, link.FilterNewsSubject, link.RoadFilter, link.FollowFilter, &h.filter, filterKept, filterBytes}
}

// Bounds of each kind; a message has an equal part of the bytes.
const (
	editionsKept  = 1000 // the newest
	editionsBytes = 256 << 20
	editionsGap   = 1 << 10
	filterKept    = 100
	filterBytes   = 128 << 20
)

// config describes the stream, which goes on beyond what this node has met.
func (d document) config() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: d.stream, Subjects: []string{d.subject}, Storage: jetstream.FileStorage,
		MaxMsgs: int64(d.kept), MaxBytes: d.bytes, MaxMsgSize: int32(d.bytes / int64(d.kept)), AllowDirect: true, DenyDelete: true,
		RePublish: &jetstream.RePublish{Source: d.subject, Destination: d.news, HeadersOnly: true},
		FirstSeq:  d.high.next(editionsGap),
	}
}

// Edition is one version as the store keeps it.
type Edition struct {
	Version uint64 // grows by one with each, from 1
	Payload []byte // what [Editions.Publish] was given
	Time    time.Time
	Node    string // that published it, "" when unknown
}

func editionOf(r link.Record) Edition { return Edition{r.Seq, r.Data, r.Time, r.Node} }

// Publish stores an edition if the newest stored one is still of version after (0: there is none), and returns
// the new one's version. All nodes hear of it, see [Editions.Follow]. ErrConflict when somebody was faster,
// ErrUnknown when the store did not answer, ErrRefused when nothing was stored.
func (k *Editions) Publish(ctx context.Context, payload []byte, after uint64) (uint64, error) {
	return k.publish(ctx, link.Record{Data: payload, Node: k.cfg.NodeID}, after)
}

func (k *Editions) publish(ctx context.Context, r link.Record, after uint64) (uint64, error) {
	m := &nats.Msg{Subject: k.of.subject, Data: r.Data, Header: r.Header()}
	ack, err := k.put(ctx, k.of.road, m, jetstream.WithExpectStream(k.of.stream), jetstream.WithExpectLastSequence(after))
	if err != nil {
		return 0, fmt.Errorf("%s after version %d: %w", k.of.what, after, err)
	}
	r.Seq = ack.Sequence
	k.marks.met(k.of.stream, ack.Sequence)
	k.know(r)
	return ack.Sequence, nil
}

// know keeps the newest edition, for a store that comes back without it.
func (k *Editions) know(r link.Record) {
	k.of.high.meet(r.Seq)
	for old := k.newest.Load(); old == nil || r.Seq > old.Seq; old = k.newest.Load() {
		if k.newest.CompareAndSwap(old, &r) {
			return
		}
	}
}

// Now is the store's clock, by which [Edition.Time] is told.
func (k *Editions) Now(ctx context.Context) (time.Time, error) {
	info, err := k.link.StreamInfo(ctx, k.of.stream)
	if err != nil {
		return time.Time{}, err
	}
	return info.TimeStamp, nil
}

// History returns at most limit editions (1 to 1000, else an error) older than version before (0: from the newest),
// newest first. The store keeps the last 1000.
func (k *Editions) History(ctx context.Context, before uint64, limit int) ([]Edition, error) {
	if limit < 1 || limit > editionsKept {
		return nil, fmt.Errorf("history: limit %d is not in 1 to %d", limit, editionsKept)
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
	got, err := k.link.Read(ctx, k.of.stream, link.Ask{Seq: first, Next: k.of.subject, Batch: limit})
	if err != nil {
		return nil, err
	}
	var out []Edition
	for i := len(got) - 1; i >= 0; i-- {
		if r := got[i]; r.Seq < before {
			out = append(out, editionOf(r))
		}
	}
	return out, nil
}

// lastVersion is that of the newest one ever stored, 0 when there was none. It may be gone: a damaged block on a disk takes
// its messages along, and those before them are still there to go back to.
func (k *Editions) lastVersion(ctx context.Context) (uint64, error) {
	info, err := k.link.StreamInfo(ctx, k.of.stream)
	if err != nil {
		return 0, fmt.Errorf("%w: %s: %w", storeFailure(err), k.of.what, err)
	}
	return info.State.LastSeq, nil
}

// Follow calls h with the newest edition, once at first and then whenever it is another one, until stop is called.
// The calls come one after the other. What was published and replaced between two looks is skipped. News travel
// at once; a look at the store in each period finds what was lost on the way.
func (k *Editions) Follow(h func(Edition)) (stop func(), err error) {
	r := &link.Reader{Link: k.link, Stream: k.of.stream, Subject: k.of.subject, Newest: true, Take: func(m link.Record) {
		if known := k.newest.Load(); known != nil && known.Outdates(m) {
			k.LookAfter() // which writes the newer one over it
			return
		}
		k.know(m)
		h(editionOf(m))
	}}
	w := k.link.Follow(k.of.follow, r.Read)
	if err := w.Hear(k.of.news); err != nil {
		return nil, err
	}
	_ = w.LookOnce(context.Background()) // its loop looks again
	return w.Start(), nil
}

// restore writes the newest edition that this node knows.
func (k *Editions) restore(ctx context.Context) error {
	newest := func() link.Record {
		if r := k.newest.Load(); r != nil {
			return *r
		}
		return link.Record{}
	}
	return k.restoreNewest(ctx, k.of.stream, k.of.subject, newest, func(r link.Record, _, last uint64) error {
		_, err := k.publish(ctx, r, last)
		return err
	})
}
