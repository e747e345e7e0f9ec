package cluster

import (
	"container/heap"
	"context"
	"sync/atomic"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
)

// lane is the way to one shard: what is to be sent there goes out together,
// few batches at a time, past one breaker.
type lane struct {
	// fixed
	cluster *Cluster
	shard   string
	health  *health
	wake    chan struct{} // a call is due sooner than the loop knows
	doubt   chan struct{} // a call has failed: beat now
	room    chan struct{} // a token for each batch under way

	// life counts the lives of the server, from 1: it changes when the shard
	// may have lost what it was told.
	life atomic.Int64
	// changed is when the present life was first seen, 0 for the first.
	changed atomic.Int64

	mu     lock.Mutex[lock.Lane]
	queue  jobs
	most   int                 // that go out together
	near   time.Duration       // the shortest way of late
	active int                 // jobs taken from it that are not settled
	owing  map[*lease]struct{} // have spent while the shard was away
	closed bool
}

// errand is something to do at a shard. prepare fills in the call and reports
// false when nothing is to be done any more; else settle is told how it ended.
type errand interface {
	prepare(l *lane, now limit.Instant, c *Call) bool
	settle(l *lane, sent, now limit.Instant, c *Call)
}

// job is an errand's place in a lane's queue.
type job struct {
	errand errand
	due    limit.Instant // guarded by the lane's mu
	place  int           // in the queue, from 1; 0 when not in it
}

const (
	// leastBatch and maxBatch bound what goes out together, and maxBatches
	// what is under way: a server does one call after the other, and a storm
	// of them must not look like one that answers too slowly.
	leastBatch = 32
	maxBatch   = 512
	maxBatches = 4
)

func newLane(c *Cluster, shard string) *lane {
	l := &lane{
		cluster: c,
		shard:   shard,
		wake:    make(chan struct{}, 1),
		doubt:   make(chan struct{}, 1),
		room:    make(chan struct{}, maxBatches),
	}
	l.life.Store(1)
	l.most = leastBatch
	l.health = newHealth(c, shard)
	return l
}

// schedule has a job go out at an instant, now at the soonest, or when it was to
// go out if that is sooner. On a closed lane it stays where it is.
func (l *lane) schedule(j *job, due limit.Instant) {
	due = max(due, l.cluster.cfg.Clock())
	l.mu.Lock()
	switch {
	case l.closed:
		l.mu.Unlock()
		return
	case j.place == 0:
		j.due = due
		heap.Push(&l.queue, j)
	case due < j.due:
		j.due = due
		heap.Fix(&l.queue, j.place-1)
	}
	first := l.queue[0] == j
	l.mu.Unlock()
	if first {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// take removes what is due from the queue and tells since when the first of it
// is, or how long to wait when nothing is.
func (l *lane) take(now limit.Instant) (batch []*job, since limit.Instant, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 {
		since = l.queue[0].due
	}
	for len(l.queue) > 0 && len(batch) < l.most && l.queue[0].due <= now {
		batch = append(batch, heap.Pop(&l.queue).(*job))
	}
	l.active += len(batch)
	if len(batch) == 0 && len(l.queue) > 0 {
		return nil, 0, since.Sub(now)
	}
	return batch, since, time.Hour
}

// run sends what is due until ctx ends.
func (l *lane) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		batch, since, wait := l.take(l.cluster.cfg.Clock())
		if len(batch) == 0 {
			timer.Reset(wait)
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			case <-l.wake:
			}
			continue
		}
		select {
		case <-ctx.Done():
			l.fail(batch)
			return
		case l.room <- struct{}{}:
		}
		l.cluster.tasks.Go(func() {
			l.send(ctx, batch, since)
			<-l.room
			l.mu.Lock()
			l.active -= len(batch)
			l.mu.Unlock()
		})
	}
}

// send does the errands of a batch in one call of the store, the first of which
// has been due since an instant.
func (l *lane) send(ctx context.Context, batch []*job, since limit.Instant) {
	now := l.cluster.cfg.Clock()
	store := make([]Call, len(batch))
	calls, sent := make([]*Call, 0, len(batch)), batch[:0]
	for i, j := range batch {
		if j.errand.prepare(l, now, &store[i]) {
			calls, sent = append(calls, &store[i]), append(sent, j)
		}
	}
	if len(calls) == 0 {
		return
	}
	served := l.do(ctx, calls)
	got := l.cluster.cfg.Clock()
	if l.adapt(len(calls), got.Sub(now)); served {
		l.cluster.timing.sawTrip(got.Sub(max(since, now.Add(-longestBudget))))
	}
	for i, j := range sent {
		j.errand.settle(l, now, got, calls[i])
	}
}

// adapt lets more calls go out together as long as that takes no time beyond the
// way there and back, and fewer when it does.
func (l *lane) adapt(sent int, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.near == 0 || took < l.near {
		l.near = took
	}
	l.near += (took - l.near) / 64
	switch {
	case took > l.near+l.cluster.cfg.Budget:
		l.most = max(l.most/2, leastBatch)
	case sent == l.most:
		l.most = min(l.most+leastBatch, maxBatch)
	}
}

// do makes the calls, unless the shard is away, and tells whether it served
// them. Whether it is back is for beat to find out, which also learns whether it
// is another than before.
func (l *lane) do(ctx context.Context, calls []*Call) bool {
	done, err := l.health.allow()
	if err != nil {
		for _, c := range calls {
			c.Err = errAway
		}
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, l.cluster.timing.patience())
	l.cluster.cfg.Store.Do(ctx, calls)
	cancel()
	verdict := verdictOf(calls)
	if done(verdict); verdict != nil {
		select {
		case l.doubt <- struct{}{}:
		default:
		}
	}
	l.cluster.countCalls(calls)
	return verdict == nil
}

// lost tells whether a key of which this node knows nothing may be one
// that the shard has lost: for as long after a change of its life as such a
// bucket takes to fill, and others may hold what it granted.
func (l *lane) lost(now limit.Instant, t *limit.Terms) bool {
	changed := limit.Instant(l.changed.Load())
	return changed != 0 && now.Sub(changed)-2*l.cluster.timing.longestLease() < t.Fills()
}

// fail settles a batch that is not sent any more.
func (l *lane) fail(batch []*job) {
	now := l.cluster.cfg.Clock()
	for _, j := range batch {
		var c Call
		if j.errand.prepare(l, now, &c) {
			c.Err = errAway
			j.errand.settle(l, now, now, &c)
		}
	}
}

// hasten has everything go out now.
func (l *lane) hasten() {
	l.mu.Lock()
	for _, j := range l.queue {
		j.due = 0
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// idle tells whether nothing waits and nothing is under way.
func (l *lane) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue) == 0 && l.active == 0
}

// close stops taking jobs and returns those that wait.
func (l *lane) close() []*job {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	rest := l.queue
	l.queue = nil
	for _, j := range rest {
		j.place = 0
	}
	return rest
}

// jobs is a heap by due.
type jobs []*job

func (q jobs) Len() int           { return len(q) }
func (q jobs) Less(i, k int) bool { return q[i].due < q[k].due }

func (q jobs) Swap(i, k int) {
	q[i], q[k] = q[k], q[i]
	q[i].place, q[k].place = i+1, k+1
}

func (q *jobs) Push(x any) {
	j := x.(*job)
	*q = append(*q, j)
	j.place = len(*q)
}

func (q *jobs) Pop() any {
	last := len(*q) - 1
	j := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	j.place = 0
	return j
}

// tellDebts has every lease tell its debt, asked or not, once the shard is back.
func (l *lane) tellDebts() {
	l.mu.Lock()
	owing := l.owing
	l.owing = nil
	l.mu.Unlock()
	for p := range owing {
		p.LockSubject()
		p.plan(l.cluster.cfg.Clock())
		p.UnlockSubject()
	}
}

func (l *lane) owes(p *lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owing == nil {
		l.owing = map[*lease]struct{}{}
	}
	l.owing[p] = struct{}{}
}
