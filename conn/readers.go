package conn

import (
	"runtime"
	"sync"
	"sync/atomic"

	"liveroom/internal/lock"
)

// readers are goroutines that read for one session after the other. A goroutine of its own for each session that has input
// would grow its stack anew each time, which costs more than the reading. There are as many as sessions have input at a
// time, since a seat may take its time; of those only a few wait for more.
//
// A session that waits for something else than its peer is not counted among them, see [Session.Await]. Input that comes when
// [Config.MaxReaders] are at work stays in the kernel until one has finished: a burst costs a bounded
// number of stacks and buffers, and past that its senders wait.
type readers struct {
	next chan *Session   // to one that waits
	done <-chan struct{} // closed when they are to end; fixed
	most int             // at work because of input; fixed
	rest int             // that wait; fixed
	away int             // sessions that wait for something else than their peer, at most; fixed
	live sync.WaitGroup

	aides chan func()  // to a goroutine that waits for work, see [Session.Aside]
	idle  atomic.Int32 // of those

	mu lock.Mutex[lock.Readers]
	// guarded by mu
	working int
	resting int
	waiting int // see Session.Await
	beside  int // of those, see Session.Aside
	stopped bool
	free    sync.Cond // fewer work, or the end has come
}

func newReaders(most, away int, done <-chan struct{}) *readers {
	r := &readers{next: make(chan *Session), aides: make(chan func()), done: done, most: most, away: away, rest: 8 * runtime.GOMAXPROCS(0)}
	r.free.L = &r.mu
	return r
}

// read gives a session a reader. It does not wait, and may start one beyond the bound, for a session that is to end.
func (r *readers) read(s *Session) {
	r.mu.Lock()
	r.working++
	r.mu.Unlock()
	select {
	case r.next <- s:
	default:
		r.live.Go(func() { r.run(s) })
	}
}

func (r *readers) run(s *Session) {
	for {
		s.run()
		if !r.finished() {
			return
		}
		select {
		case s = <-r.next:
			r.mu.Lock()
			r.resting--
			r.mu.Unlock()
		case <-r.done:
			return
		}
	}
}

// finished ends the reading for one session. It reports whether its reader may wait for another.
func (r *readers) finished() (rest bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.freeLocked()
	if rest = r.resting < r.rest; rest {
		r.resting++
	}
	return rest
}

func (r *readers) freeLocked() {
	if r.working--; r.working == r.most-1 {
		r.free.Signal()
	}
}

// leave gives a place among those that work back, for a session that is about to wait. False: too many wait.
func (r *readers) leave() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting >= r.away {
		return false
	}
	r.waiting++
	r.freeLocked()
	return true
}

// back ends the wait. It may be one beyond the bound for a moment, since what was begun must end.
func (r *readers) back() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting--
	r.working++
}

// Await runs f, which waits for something else than the peer: a store, or a pace. Nothing of the session's input is
// read until it returns, but its reader is another's meanwhile. It is for [Lobby.Hello], which is called in such a wait
// already, and [Seat.Receive] alone; within another Await it just runs f. False: [Config.MaxWaiting] wait already, and f did not run.
func (s *Session) Await(f func()) bool {
	s.mu.Lock()
	within := s.turn == awaiting
	s.mu.Unlock()
	if within {
		f()
		return true
	}
	if !s.a.readers.leave() {
		return false
	}
	s.pass(awaiting)
	defer func() {
		s.pass(handling)
		s.a.readers.back()
	}()
	f()
	return true
}

// How much may wait beside the reading, of a session and of all: as many goroutines as a flood brings would leave a node that is short
// of processor time none for what they wait for.
const (
	asidesMost = 64
	asidesAll  = 1024
)

// asides are what a session waits for beside its reading.
type asides struct {
	all sync.WaitGroup
	n   atomic.Int32
}

// Aside runs f, which waits for something else than the peer, on a goroutine of its own while the session's input is read on. It is for
// [Seat.Receive] alone; the seat is left when all have returned. False: too many wait so already, of this session or of all, and f did
// not run.
func (s *Session) Aside(f func()) bool {
	a := s.reader.asides
	if a == nil {
		a = &asides{}
		s.reader.asides = a
	}
	r := s.a.readers
	if a.n.Load() >= asidesMost || !r.aside(1) {
		return false
	}
	a.n.Add(1)
	a.all.Add(1)
	work := func() {
		defer func() {
			a.n.Add(-1)
			r.aside(-1)
			a.all.Done()
		}()
		defer s.recovered("aside")
		f()
	}
	select {
	case r.aides <- work:
	default:
		r.live.Go(func() { r.aid(work) })
	}
	return true
}

// aidesAtRest is how many goroutines of asides wait for the next, with the stacks that they have grown.
const aidesAtRest = 512

// aid runs what sessions wait for beside their reading, one after the other.
func (r *readers) aid(work func()) {
	for {
		work()
		if r.idle.Add(1) > aidesAtRest {
			r.idle.Add(-1)
			return
		}
		select {
		case work = <-r.aides:
			r.idle.Add(-1)
		case <-r.done:
			return
		}
	}
}

// aside counts one more or less that waits, and reports whether there was a place.
func (r *readers) aside(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > 0 && (r.waiting >= r.away || r.beside >= asidesAll) {
		return false
	}
	r.waiting, r.beside = r.waiting+n, r.beside+n
	return true
}

// await waits until there is a reader for further input. Only the poller calls it.
func (r *readers) await() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.working >= r.most && !r.stopped {
		r.free.Wait()
	}
}

// stop lets the poller go on, to its own end.
func (r *readers) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	r.free.Broadcast()
}
