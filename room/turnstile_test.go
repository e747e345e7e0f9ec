package room

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"liveroom/limit"
)

// check returns what is wrong with the line.
func (q *turnstile) check() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	waits := len(q.waiting) - q.head
	switch {
	case waits < 0:
		return fmt.Errorf("%d wait behind %d", len(q.waiting), q.head)
	case waits > 0 && !q.driving:
		return fmt.Errorf("%d wait and nobody calls them", waits)
	case q.head > waits:
		return fmt.Errorf("keeps %d who are gone beside %d who wait", q.head, waits)
	case q.left < 0:
		return fmt.Errorf("%d turns left", q.left)
	}
	for _, t := range q.waiting[q.head:] {
		if t == nil {
			return fmt.Errorf("a place without a turn")
		}
	}
	return nil
}

// The line against a plain list: first come, first called, never more than asked for, and who waited too long is refused.
func TestTurnstileModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := limit.Instant(0).Add(time.Hour)
		q := turnstile{driving: true, busy: now, gifts: rapid.Bool().Draw(t, "gifts")} // the test is the driver
		began := now
		var model []*waiter
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if err := q.check(); err != nil {
					t.Fatal(err)
				}
				if len(q.waiting)-q.head != len(model) {
					t.Fatalf("%d wait, want %d", len(q.waiting)-q.head, len(model))
				}
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 200).Draw(t, "ms")) * time.Millisecond)
			},
			"come": func(t *rapid.T) {
				for range rapid.IntRange(1, 8).Draw(t, "n") {
					e := &waiter{since: now, come: make(chan bool, 1)}
					q.waiting = append(q.waiting, e)
					model = append(model, e)
				}
			},
			"call": func(t *rapid.T) {
				n := rapid.IntRange(0, 5).Draw(t, "n")
				q.callLocked(now, n)
				most := 250 * time.Millisecond
				if q.gifts {
					if most = 500 * time.Millisecond; now.Sub(began) > most {
						most = 50 * time.Millisecond
					}
				}
				for n > 0 && len(model) > 0 {
					late := now.Sub(model[0].since) > most
					if ok := <-model[0].come; ok == late {
						t.Fatalf("after %v: called %v", now.Sub(model[0].since), ok)
					} else if ok {
						n--
					}
					model = model[1:]
				}
				for _, e := range model {
					if len(e.come) > 0 {
						t.Fatal("called out of turn")
					}
				}
			},
		})
	})
}

func TestTurnstileCallsEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), nil)
		var passed atomic.Int64
		var all sync.WaitGroup
		for range 5000 {
			all.Go(func() {
				if w.hub.waitInLine(&w.hub.turnstile, w.hub.gate.Now()) {
					passed.Add(1)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if passed.Load() != 5000 {
			t.Errorf("%d of 5000 passed", passed.Load())
		}
		if err := w.hub.turnstile.check(); err != nil || w.hub.turnstile.driving {
			t.Errorf("driving %v, %v", w.hub.turnstile.driving, err)
		}
		w.stop()
		if !w.hub.waitInLine(&w.hub.turnstile, w.hub.gate.Now()) {
			t.Error("waits for a hub that has ended")
		}
	})
}
