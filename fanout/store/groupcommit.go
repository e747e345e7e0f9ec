package store

import (
	"context"
	"errors"
	"fmt"
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
	// groupMost is how many writes are stored at once: what the server takes.
	groupMost = 1000
	// lineMost bounds what waits.
	lineMost = 1 << 15
	// lookEvery is how often what waits is asked whether it has waited too long.
	lookEvery = 50 * time.Millisecond
)

// groups let the writes to a stream share syncs: while one group is brought to the disk, what comes gathers for the next. What waits
// is a place in a line and no goroutine: one goroutine stores, another answers. Whatever the store does, each write is answered once and
// in time: what no group took within the time-out is refused, and stored by nobody; of what one took nobody knows.
type groups struct {
	timeout time.Duration                   // until a write is taken; for storing a group
	store   func(context.Context, []*write) // sets ack and err of each, within the context
	known   func(group []*write)            // is told before any of them is answered
	soon    link.Wake                       // there is something in the line
	answers chan []*write                   // that a group has stored

	mu    lock.Mutex[lock.Leaf]
	line  []*write      // that wait; guarded by mu
	taken []*write      // that are being stored; guarded by mu
	most  int           // of the line: what is stored within the time-out, as the last groups went; guarded by mu
	took  time.Duration // the last group; guarded by mu
	ended bool          // guarded by mu
}

func newGroups(timeout time.Duration, store func(context.Context, []*write), known func([]*write)) *groups {
	return &groups{timeout: timeout, store: store, known: known, soon: link.NewWake(), answers: make(chan []*write, 4), most: lineMost}
}

// write is a message that somebody waits for.
type write struct {
	m     *nats.Msg
	room  string
	since time.Time
	until time.Time // an answer is due
	done  func(*jetstream.PubAck, error)
	stage atomic.Uint32

	// Fixed once the group is stored.
	ack *jetstream.PubAck
	err error
}

// What has become of a write.
const (
	inLine uint32 = iota
	inGroup
	answered
)

// answer tells what became of a write that is as far as from, and of no other.
func (w *write) answer(from uint32, ack *jetstream.PubAck, err error) {
	if w.stage.CompareAndSwap(from, answered) {
		w.done(ack, err)
	}
}

// begin puts w in the line, or answers it.
func (g *groups) begin(w *write) {
	var why error
	g.mu.Lock()
	switch {
	case g.ended:
		why = link.ErrClosed
	case len(g.line) >= g.most:
		why = ErrLate
	default:
		g.line = append(g.line, w)
	}
	g.mu.Unlock()
	if why != nil {
		w.answer(inLine, nil, refusedSince(why))
		return
	}
	g.soon.Soon()
}

func refusedSince(why error) error { return fmt.Errorf("%w: %w", link.ErrRefused, why) }

// late reports whether what comes now would wait for too long.
func (g *groups) late() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.line) >= g.most
}

// run stores one group after the other until ctx ends, and then refuses what waits.
func (g *groups) run(ctx context.Context) {
	answering := make(chan struct{})
	go func() {
		defer close(answering)
		g.answerAll()
	}()
	for ctx.Err() == nil {
		if group := g.next(); len(group) > 0 {
			began := time.Now()
			bounded, cancel := context.WithTimeout(context.Background(), g.timeout) // what was begun ends
			g.store(bounded, group)
			cancel()
			g.learn(len(group), time.Since(began))
			g.known(group)
			g.answers <- group
			continue
		}
		select {
		case <-g.soon:
		case <-ctx.Done():
		}
	}
	g.mu.Lock()
	g.ended = true
	left := g.line
	g.line = nil
	g.mu.Unlock()
	close(g.answers)
	<-answering
	for _, w := range left {
		w.answer(inLine, nil, refusedSince(link.ErrClosed))
	}
}

// next takes the group that is stored next. What could not be answered in time any more, if that takes as long as the last one did, is
// refused.
func (g *groups) next() []*write {
	g.mu.Lock()
	group := make([]*write, 0, min(len(g.line), groupMost))
	var late []*write
	n, ends := 0, time.Now().Add(g.took+lookEvery)
	for ; n < len(g.line) && len(group) < groupMost; n++ {
		switch w := g.line[n]; {
		case !ends.Before(w.until):
			late = append(late, w)
		case w.stage.CompareAndSwap(inLine, inGroup):
			group = append(group, w)
		}
	}
	g.passLocked(n)
	g.taken = group
	if len(group) == 0 {
		g.took /= 2 // else nobody would find out that it is over
	}
	g.mu.Unlock()
	for _, w := range late {
		w.answer(inLine, nil, refusedSince(ErrLate))
	}
	return group
}

// passLocked takes the first n out of the line.
func (g *groups) passLocked(n int) {
	left := copy(g.line, g.line[n:])
	clear(g.line[left:])
	g.line = g.line[:left]
}

// learn bounds the line by what can be stored in time: what would wait longer is refused at once, which costs less and tells sooner.
func (g *groups) learn(n int, took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.took = took
	if n < groupLeast { // the disk is not the bound
		n, took = lineMost, g.timeout
	}
	fits := int(float64(n) * float64(g.timeout) / float64(max(took, time.Microsecond)))
	g.most = min(max((3*g.most+fits)/4, groupMost), lineMost)
}

// answerAll answers what was stored, and what waits for too long.
func (g *groups) answerAll() {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case group, more := <-g.answers:
			if !more {
				return
			}
			for _, w := range group {
				w.answer(inGroup, w.ack, w.err)
			}
		case <-look.C:
			g.giveUp(time.Now().Add(lookEvery))
		}
	}
}

// giveUp answers what would have waited for too long by then.
func (g *groups) giveUp(then time.Time) {
	g.mu.Lock()
	n := 0
	for n < len(g.line) && then.Sub(g.line[n].since) >= g.timeout { // the oldest come first
		n++
	}
	late := append([]*write(nil), g.line[:n]...)
	g.passLocked(n)
	taken := g.taken
	g.mu.Unlock()
	for _, w := range late {
		w.answer(inLine, nil, refusedSince(ErrLate))
	}
	for _, w := range taken {
		if !then.Before(w.until) {
			w.answer(inGroup, nil, fmt.Errorf("%w: %w", link.ErrUnknown, context.DeadlineExceeded))
		}
	}
}
