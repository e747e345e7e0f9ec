package model

import (
	"context"
	"sync"
	"time"

	"liveroom/limit"
)

// The ways that others share a quota, for comparison. They meet the same
// traffic over the same link, and a store that is exact.

// tally is an exact bucket at a server for the ways that are not ours. Its
// level may go below zero: what is reported late is debited all the same.
type tally struct {
	mu    sync.Mutex
	bound Bound
	level int64 // tokens times Bound.Per
	last  time.Time
}

func newTally(b Bound) *tally {
	return &tally{bound: b, level: b.Burst * int64(b.Per), last: time.Now()}
}

// levelLocked refills and returns the level.
func (t *tally) levelLocked() int64 {
	now := time.Now()
	full := t.bound.Burst * int64(t.bound.Per)
	t.level += t.bound.inflow(now.Sub(t.last), full-min(t.level, full))
	t.last = now
	return t.level
}

// take takes cost if it is there, or always when forced, and returns the whole
// tokens left.
func (t *tally) take(cost int64, force bool) (left int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	need := cost * int64(t.bound.Per)
	if ok = t.levelLocked() >= need; ok || force {
		t.level -= need
	}
	return t.level / int64(t.bound.Per), ok
}

// central is a bucket per subject at the store.
type central struct {
	mu      sync.Mutex
	bound   Bound
	tallies map[int]*tally
}

func (c *central) of(subject int) *tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tallies[subject]
	if t == nil {
		t = newTally(c.bound)
		c.tallies[subject] = t
	}
	return t
}

// perMessage asks the store about each message and waits for it; what finds
// no answer within the budget is refused.
type perMessage struct{ node *Node }

const naiveBudget = 30 * time.Millisecond

func (q *perMessage) admit(subject int, cost int64) (limit.Instant, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), naiveBudget)
	defer cancel()
	w := q.node.world
	r := q.node.link.send(ctx, w.servers[0], func() reply {
		w.servers[0].count("message")
		if _, ok := w.central.of(subject).take(cost, false); !ok {
			return reply{}
		}
		return reply{granted: int64(q.node.now())}
	})
	return limit.Instant(r.granted), r.err == nil && r.granted != 0
}

func (q *perMessage) close(context.Context) {}

// reportLater decides from the level that the store last told and reports what
// it admitted every period.
type reportLater struct {
	node   *Node
	period time.Duration

	mu    sync.Mutex
	views map[int]*view
	stop  chan struct{}
	done  sync.WaitGroup
}

// view is what a node believes of a subject.
type view struct {
	level   *tally
	pending int64
}

func newReportLater(n *Node, period time.Duration) *reportLater {
	q := &reportLater{node: n, period: period, views: map[int]*view{}, stop: make(chan struct{})}
	q.done.Go(q.run)
	return q
}

func (q *reportLater) admit(subject int, cost int64) (limit.Instant, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	v := q.views[subject]
	if v == nil {
		v = &view{level: newTally(q.node.world.scenario.Bound)}
		q.views[subject] = v
	}
	_, ok := v.level.take(cost, false)
	if ok {
		v.pending += cost
	}
	return q.node.now(), ok
}

func (q *reportLater) run() {
	tick := time.NewTicker(q.period + time.Duration(q.node.number)*time.Microsecond)
	defer tick.Stop()
	for {
		select {
		case <-q.stop:
			return
		case <-tick.C:
			q.report()
		}
	}
}

// report sends what was admitted and takes over what all nodes together left.
func (q *reportLater) report() {
	q.mu.Lock()
	views := map[int]int64{}
	for subject, v := range q.views {
		views[subject], v.pending = v.pending, 0
	}
	q.mu.Unlock()
	for subject, used := range views {
		ctx, cancel := context.WithTimeout(context.Background(), naiveBudget)
		w := q.node.world
		r := q.node.link.send(ctx, w.servers[0], func() reply {
			w.servers[0].count("report")
			left, _ := w.central.of(subject).take(used, true)
			return reply{granted: left}
		})
		cancel()
		if r.err == nil {
			q.heard(subject, r.granted)
		}
	}
}

func (q *reportLater) heard(subject int, left int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	v := q.views[subject]
	v.level.level, v.level.last = (left-v.pending)*int64(v.level.bound.Per), time.Now()
}

func (q *reportLater) close(context.Context) {
	close(q.stop)
	q.done.Wait()
}

// fixedShare gives each node the same part of the rate for good.
type fixedShare struct {
	node *Node
	mu   sync.Mutex
	own  map[int]*tally
}

func (q *fixedShare) admit(subject int, cost int64) (limit.Instant, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.own[subject]
	if t == nil {
		b, nodes := q.node.world.scenario.Bound, int64(q.node.world.scenario.Nodes)
		t = newTally(Bound{Burst: max(b.Burst/nodes, 1), Rate: b.Rate, Per: b.Per * time.Duration(nodes)})
		q.own[subject] = t
	}
	_, ok := t.take(cost, false)
	return q.node.now(), ok
}

func (q *fixedShare) close(context.Context) {}
