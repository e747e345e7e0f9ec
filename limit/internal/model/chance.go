package model

import (
	"sync"
	"time"
)

// Purposes of streams of chance.
const (
	purposeLink = iota
	purposeTraffic
	purposeScenario
	purposeNode
)

// slice is how long a load is taken as constant.
const slice = 10 * time.Millisecond

// speak sends a node the messages of one subject: arrivals at random
// (Poisson) at the scenario's load, each decided on a goroutine of its own, as
// messages of many sockets are. It returns when all are decided.
func (w *World) speak(number, subject int, from time.Duration) {
	s := w.scenario
	chance := newStream(s.Seed, purposeTraffic, number<<16|subject).rand
	var messages sync.WaitGroup
	defer messages.Wait()
	sent := 0
	for at := time.Duration(0); at < s.Length; {
		load := s.Load(at, number, subject)
		next := (at/slice + 1) * slice
		if load > 0 {
			if gap := time.Duration(chance.ExpFloat64() / load * float64(time.Second)); at+gap < next {
				at += gap
				time.Sleep(from + at - time.Since(w.start))
				if n := w.alive(number); n != nil {
					sent++
					place := time.Duration(sent%1000*100+subject) * time.Nanosecond
					messages.Go(func() { n.message(subject, 1, place) })
				}
				continue
			}
		}
		at = next
	}
}

// alive returns the node that serves under a number now, nil when none does.
func (w *World) alive(number int) *Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.nodes) - 1; i >= 0; i-- {
		if n := w.nodes[i]; n.number == number {
			if n.serving() {
				return n
			}
			return nil
		}
	}
	return nil
}
