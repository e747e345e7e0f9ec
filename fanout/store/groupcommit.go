package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
	"liveroom/internal/lock"
)

// ErrLate says that a write was not begun within [Config].StoreTimeout, since the disk is slower than what comes.
var ErrLate = errors.New("fanout: the disk is slower than what comes")

const (
	// groupMost is how many writes are stored at once: half of what the server takes.
	groupMost = 500
	// groupLeast is how many of them a batch is worth: it costs seven syncs, each write alone one.
	groupLeast = 12
	// groupParts is how many a group is cut into that has a write in it which keeps out all of it.
	groupParts = 8
	// lineMost bounds what waits, beyond what sockets may have waiting.
	lineMost = 1 << 15
)

// groups let the writes to a stream of the embedded server share syncs: while one group is brought to the disk, what comes gathers
// for the next. A group is an atomic batch (NATS ADR-50), which the server syncs as one. Servers of others share the syncs of replicas
// by themselves.
type groups struct {
	*core
	road   link.Road
	stored func([]*write) // in the order of their sequences; before any of them is answered
	soon   link.Wake
	ended  chan struct{}

	mu   lock.Mutex[lock.Leaf]
	line []*write // that wait; guarded by mu
	most int      // of them: what is stored within the time-out, as the last groups went; guarded by mu
}

func newGroups(c *core, road link.Road, stored func([]*write)) *groups {
	return &groups{core: c, road: road, stored: stored, soon: link.NewWake(), ended: make(chan struct{}), most: lineMost}
}

// write is a message that somebody waits for.
type write struct {
	m     *nats.Msg
	room  string
	since time.Time
	taken atomic.Bool // by a group, or by who waited and does not any more
	done  chan struct{}

	// Fixed once done is closed.
	ack *jetstream.PubAck
	err error
}

// begin is [core.post] in a group. What no group takes within the store's time-out is refused, and stored by nobody.
func (g *groups) begin(room string, m *nats.Msg) posted {
	w := &write{m: m, room: room, since: time.Now(), done: make(chan struct{})}
	err := g.mayStore(g.road)
	if err == nil && !g.join(w) {
		err = fmt.Errorf("%w: %w", link.ErrRefused, ErrLate)
	}
	return func(ctx context.Context) (*jetstream.PubAck, error) {
		if err != nil {
			return nil, err
		}
		return g.wait(ctx, w)
	}
}

func (g *groups) wait(ctx context.Context, w *write) (*jetstream.PubAck, error) {
	patience := time.NewTimer(g.cfg.StoreTimeout - time.Since(w.since))
	defer patience.Stop()
	why := ErrLate
	select {
	case <-w.done:
		return w.ack, w.err
	case <-patience.C:
	case <-ctx.Done():
		why = ctx.Err()
	case <-g.ended:
		why = link.ErrClosed
	}
	if w.taken.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("%w: %w", link.ErrRefused, why)
	}
	select {
	case <-w.done:
		return w.ack, w.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", link.ErrUnknown, ctx.Err())
	}
}

// join reports whether there was a place in the line.
func (g *groups) join(w *write) bool {
	g.mu.Lock()
	fits := len(g.line) < g.most
	if fits {
		g.line = append(g.line, w)
	}
	g.mu.Unlock()
	g.soon.Soon()
	return fits
}

// next takes the group that is stored next.
func (g *groups) next() []*write {
	g.mu.Lock()
	defer g.mu.Unlock()
	group := make([]*write, 0, min(len(g.line), groupMost))
	n := 0
	for n < len(g.line) && len(group) < groupMost {
		if w := g.line[n]; w.taken.CompareAndSwap(false, true) {
			group = append(group, w)
		}
		n++
	}
	g.line = append(g.line[:0], g.line[n:]...)
	clear(g.line[len(g.line):min(cap(g.line), len(g.line)+n)])
	return group
}

// run stores one group after the other until ctx ends.
func (g *groups) run(ctx context.Context) {
	defer close(g.ended)
	for ctx.Err() == nil {
		if group := g.next(); len(group) > 0 {
			g.metrics.group.Observe(float64(len(group)))
			began := time.Now()
			bounded, cancel := g.link.Bounded(context.Background()) // what was begun ends
			g.commit(bounded, group, groupParts)
			cancel()
			g.learn(len(group), time.Since(began))
			continue
		}
		select {
		case <-g.soon:
		case <-ctx.Done():
		}
	}
}

// learn bounds the line by what can be stored in time: what would wait longer is refused at once, which costs less and tells sooner.
func (g *groups) learn(n int, took time.Duration) {
	if n < groupLeast { // the disk is not the bound
		n, took = lineMost, g.cfg.StoreTimeout
	}
	fits := int(float64(n) * float64(g.cfg.StoreTimeout) / float64(max(took, time.Microsecond)))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.most = min(max((3*g.most+fits)/4, groupMost), lineMost)
}

// commit stores a group, and answers all of it. It may be cut into parts, if more than one.
func (g *groups) commit(ctx context.Context, group []*write, parts int) {
	if len(group) < groupLeast {
		g.each(ctx, group)
		return
	}
	ack, err := g.batch(ctx, group)
	switch code := apiCode(err); {
	case err == nil:
		_ = g.settled(nil)
		first := ack.Sequence + 1 - uint64(len(group))
		for i, w := range group {
			w.ack = &jetstream.PubAck{Stream: ack.Stream, Sequence: first + uint64(i)}
		}
		g.answer(group)
	case parts > 1 && (code == errCodeDuplicateInBatch || code == errCodeDuplicateInProcess || wrongLast(err)):
		// One that the stream has, or must not have, keeps out all of them.
		for part := range slices.Chunk(group, max(groupLeast, (len(group)+parts-1)/parts)) {
			g.commit(ctx, part, 1)
		}
	case code != 0: // what the stream has costs no sync
		g.each(ctx, group)
	default:
		err = g.settled(err)
		for _, w := range group {
			w.err = err
		}
		g.answer(group)
	}
}

// errCodeDuplicateInBatch: the stream has a message of that id (nats-server error 10201).
const errCodeDuplicateInBatch = 10201

// The headers of an atomic batch.
const (
	batchSequenceHeader = "Nats-Batch-Sequence"
	batchCommitHeader   = "Nats-Batch-Commit"
)

// batch stores all of the group or nothing. Nothing is stored before the last of it has arrived.
func (g *groups) batch(ctx context.Context, group []*write) (*jetstream.PubAck, error) {
	id := rand.Text()[:12]
	for i, w := range group {
		w.m.Header.Set(link.BatchHeader, id)
		w.m.Header.Set(batchSequenceHeader, strconv.Itoa(i+1))
	}
	last := group[len(group)-1].m
	last.Header.Set(batchCommitHeader, "1")
	defer func() {
		for _, w := range group {
			w.m.Header.Del(link.BatchHeader)
			w.m.Header.Del(batchSequenceHeader)
		}
		last.Header.Del(batchCommitHeader)
	}()
	for _, w := range group[:len(group)-1] {
		if err := g.link.Store.PublishMsg(w.m); err != nil {
			return nil, fmt.Errorf("%w: %w", link.ErrDisconnected, err) // a batch that does not end is none
		}
	}
	return g.link.JS.PublishMsg(ctx, last, jetstream.WithRetryAttempts(0))
}

// each stores one by one, at the same time.
func (g *groups) each(ctx context.Context, group []*write) {
	var all sync.WaitGroup
	for _, w := range group {
		all.Go(func() { w.ack, w.err = g.core.put(ctx, g.road, w.m) })
	}
	all.Wait()
	g.answer(group)
}

func (g *groups) answer(group []*write) {
	g.stored(group)
	for _, w := range group {
		close(w.done)
	}
}
