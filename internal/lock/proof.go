//go:build race

package lock

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
)

// Mutex is a sync.Mutex with a place in the order of locks, and proves it. The zero value is unlocked.
type Mutex[P place] struct{ mu sync.Mutex }

// Lock takes the lock. It panics when the goroutine holds one of the same place or a later one.
func (m *Mutex[P]) Lock() { m.LockAt(0) }

// LockAt is Lock for one of several of the same place that are held together, in ascending order of i, which is 0 to 15.
func (m *Mutex[P]) LockAt(i int) {
	var p P
	mine().take(m, p.at()*within+i, p)
	m.mu.Lock()
}

// TryLock takes the lock if nobody holds it. It waits for nobody, and so is allowed in any order.
func (m *Mutex[P]) TryLock() bool {
	if !m.mu.TryLock() {
		return false
	}
	var p P
	mine().note(m, p.at()*within, p)
	return true
}

// Unlock gives the lock back, on the goroutine that took it.
func (m *Mutex[P]) Unlock() {
	mine().drop(m)
	m.mu.Unlock()
}

// within is how many of the same place may be told apart.
const within = 16

// hold is a lock that a goroutine has.
type hold struct {
	lock  any
	at    int
	place place
	stack [8]uintptr
}

// holds are the locks of one goroutine, and its own.
type holds struct {
	list [8]hold
	n    int
}

// goroutines are the holds by who has them. A goroutine that has ended leaves its place, with nothing in it, to the next
// one that the runtime puts there.
var goroutines = struct {
	sync.RWMutex
	of map[uintptr]*holds
}{of: map[uintptr]*holds{}}

func mine() *holds {
	g := goroutine()
	goroutines.RLock()
	h := goroutines.of[g]
	goroutines.RUnlock()
	if h == nil {
		h = &holds{}
		goroutines.Lock()
		goroutines.of[g] = h
		goroutines.Unlock()
	}
	return h
}

// take notes a lock that the goroutine is about to wait for. What follows touches what one goroutine has alone; that the runtime
// hands its place to another one later is hidden from the race detector.
//
//go:norace
func (h *holds) take(lock any, at int, p place) {
	for i := range h.list[:h.n] {
		if x := &h.list[i]; x.at >= at {
			panic(fmt.Sprintf("lock: %T is taken while %T is held, against the order; that one was taken at\n%s", p, x.place, frames(x.stack[:])))
		}
	}
	h.note(lock, at, p)
}

// note adds a lock to those of the goroutine.
//
//go:norace
func (h *holds) note(lock any, at int, p place) {
	if h.n == len(h.list) {
		panic("lock: a goroutine holds more than it may")
	}
	x := &h.list[h.n]
	*x = hold{lock: lock, at: at, place: p}
	runtime.Callers(4, x.stack[:])
	h.n++
}

// drop takes a lock off those of the goroutine.
//
//go:norace
func (h *holds) drop(lock any) {
	for i := h.n - 1; i >= 0; i-- {
		if h.list[i].lock == lock {
			for h.n--; i < h.n; i++ { // copy would be seen by the race detector
				h.list[i] = h.list[i+1]
			}
			h.list[h.n] = hold{}
			return
		}
	}
	panic("lock: a lock is given back by a goroutine that did not take it")
}

func frames(pcs []uintptr) string {
	var b bytes.Buffer
	for it := runtime.CallersFrames(pcs); ; {
		f, more := it.Next()
		if f.Function != "" {
			fmt.Fprintf(&b, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
		}
		if !more {
			return b.String()
		}
	}
}
