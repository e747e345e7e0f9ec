package conn

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// readers are goroutines that read for one session after the other. A goroutine of its own for each session that has input
// would grow its stack anew each time, which costs more than the reading. There are as many as sessions have input at a
// time, since a seat may take its time; of those only a few wait for more.
type readers struct {
	next chan *Session // to one that waits
	idle atomic.Int32
	most int32           // that wait; fixed
	done <-chan struct{} // closed when they are to end; fixed
	live sync.WaitGroup
}

func newReaders(done <-chan struct{}) *readers {
	return &readers{next: make(chan *Session), most: int32(8 * runtime.GOMAXPROCS(0)), done: done}
}

// read has a session's turn done. It does not wait.
func (r *readers) read(s *Session) {
	select {
	case r.next <- s:
	default:
		r.live.Go(func() { r.run(s) })
	}
}

func (r *readers) run(s *Session) {
	for {
		s.run()
		if r.idle.Add(1) > r.most {
			r.idle.Add(-1)
			return
		}
		select {
		case s = <-r.next:
			r.idle.Add(-1)
		case <-r.done:
			return
		}
	}
}
