package limit

import "unsafe"

// Observed is one decision as an Observer sees it. It is passed by value, so
// that looking on makes nobody's request escape to the heap.
type Observed struct {
	Now      Instant
	Request  Request
	Decision Decision
	// Scopes has bit 1<<Scope set for each subject that was asked.
	Scopes uint16
	// Conn tells live connections apart; it is 0 when none was asked. It may
	// come back for another connection once this one is gone.
	Conn uintptr
}

// Observer looks on at a Gate's decisions.
type Observer interface {
	// Observe is called on the caller's goroutine after each decision,
	// outside the subjects' locks and hence out of order between goroutines.
	// It must not block.
	Observe(Observed)
}

// Observe lets o see every decision from now on, in place of the Observer
// before; nil ends it. Requests with a negative cost are not seen.
func (g *Gate) Observe(o Observer) {
	if o == nil {
		g.observer.Store(nil)
		return
	}
	g.observer.Store(&o)
}

func tell(o Observer, now Instant, q *Request, subjects []*Subject, scopes uint16, d *Decision) {
	seen := Observed{Now: now, Request: *q, Decision: *d, Scopes: scopes}
	if len(subjects) > 0 && subjects[0].Scope == ScopeConn {
		seen.Conn = uintptr(unsafe.Pointer(subjects[0]))
	}
	o.Observe(seen)
}
