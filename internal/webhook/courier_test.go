package webhook

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/internal/hook"
	"liveroom/internal/journal"
)

func TestWhatComesIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.give(5) // before the webhook was configured
		_, stop := w.run("n1")
		time.Sleep(2 * time.Second)
		w.give(500)
		time.Sleep(2 * time.Second)
		w.want(6, 505)
		w.mu.Lock()
		if w.calls > 12 {
			t.Errorf("%d calls for 500 events", w.calls)
		}
		w.mu.Unlock()
		if at := w.place(); !at.Owned || at.Holder != "n1" || !slices.Equal(at.Kinds, []journal.Kind{journal.Gift}) {
			t.Errorf("%+v", at)
		}
		lag, err := w.consumers().Lag(t.Context(), w.place().At, w.place().Filter())
		if err != nil || lag.Events != 0 {
			t.Error(lag, err)
		}
		stop()
		if at := w.place(); at.Holder != "" {
			t.Errorf("let go by a node that ends: %q", at.Holder)
		}
		w.give(1)
		_, stop = w.run("n2")
		defer stop()
		time.Sleep(time.Second)
		w.want(506, 506)
	})
}

// A node that is gone is followed within seconds by another, and one that comes back delivers nothing beside it.
func TestOneNodeDeliversAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		held := make(chan struct{})
		w.answer = func(Batch) error { <-held; return nil } // the first node stands still within a call
		_, stop1 := w.run("n1")
		defer stop1()
		time.Sleep(time.Second)
		_, stop2 := w.run("n2")
		defer stop2()
		w.give(3)
		time.Sleep(20 * time.Second)
		if at := w.place(); at.Holder != "n1" {
			t.Fatalf("a slow call is not gone: held by %q", at.Holder)
		}
		w.set(func() { w.answer = nil })
		close(held)
		time.Sleep(time.Second)
		w.want(1, 3)

		// Somebody who is gone: nobody writes the record any more.
		stop1()
		stop2()
		c, err := w.consumers().Change(t.Context(), Prefix+"books", func(c *journal.Consumer, _ bool) error { c.Holder = "n0"; return nil })
		if err != nil {
			t.Fatal(err)
		}
		w.give(1)
		began := time.Now()
		_, stop2 = w.run("n2")
		defer stop2()
		for w.place().Holder != "n2" {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("taken over after %v", took)
		}
		time.Sleep(time.Second)
		w.want(4, 4)
		if err := w.consumers().Save(t.Context(), &c); err == nil {
			t.Error("who was taken over from moved the place")
		}
	})
}

// A platform that is away is waited for, however long; it holds nobody up but the line, and nothing is skipped or put aside.
func TestAPlatformThatIsAwayIsWaitedFor(t *testing.T) {
	for _, code := range []int{0, 401, 404, 429, 503} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			_, stop := w.run("n1")
			defer stop()
			time.Sleep(time.Second)
			w.set(func() {
				w.down = code == 0
				w.answer = func(Batch) error { return status(code) }
			})
			w.give(50)
			time.Sleep(2 * time.Hour)
			w.want(1, 0)
			if len(w.letters) > 0 {
				t.Fatalf("%d: %d dead letters", code, len(w.letters))
			}
			w.mu.Lock()
			if w.calls > 2*60*2+20 {
				t.Errorf("%d: %d calls in two hours", code, w.calls)
			}
			w.mu.Unlock()
			w.set(func() { w.down, w.answer = false, nil })
			time.Sleep(2 * time.Minute)
			w.want(1, 50)
		})
	}
}

// One event that a platform refuses, or fails at, becomes a dead letter, and the others are delivered in order; it can be sent again.
func TestOneBadEventBlocksNobody(t *testing.T) {
	bad := func(code error) func(Batch) error {
		return func(b Batch) error {
			for _, e := range b.Events {
				if e.ID == "g20" {
					return code
				}
			}
			return nil
		}
	}
	for _, c := range []struct {
		name   string
		answer func(Batch) error
		within time.Duration
	}{
		{"refused for ever", bad(status(422)), 2 * time.Second},
		{"fails", bad(status(500)), 15 * time.Minute},
		{"takes too long", bad(&hook.Failure{Outcome: hook.TimedOut, Why: fmt.Errorf("too long")}), 15 * time.Minute},
		{"named in the answer", nil, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			courier, stop := w.run("n1")
			defer stop()
			time.Sleep(time.Second)
			w.set(func() { w.answer = c.answer })
			if c.answer == nil {
				w.set(func() { w.refused = []Refused{{"g20", "no such user"}} })
			}
			w.give(300)
			time.Sleep(c.within)
			w.mu.Lock()
			got := strings.Join(w.got, " ")
			w.got = nil
			w.mu.Unlock()
			if strings.Contains(got, "g20 ") || !strings.Contains(got, "g19 g21 ") || !strings.HasSuffix(got, " g300") || strings.Count(got, " ") != 298 {
				t.Fatalf("%s: %s", c.name, got)
			}
			dead, err := courier.Dead(t.Context(), 0, 10)
			if err != nil || len(dead) != 1 || dead[0].Entry.ID != "g20" || dead[0].Why == "" {
				t.Fatalf("%s: %+v, %v", c.name, dead, err)
			}
			if n, why, err := courier.SendAgain(t.Context(), nil); n != 0 || why == "" || err != nil {
				t.Errorf("%s: sent again %d, %q, %v", c.name, n, why, err)
			}
			w.set(func() { w.answer, w.refused, w.again = nil, nil, nil })
			if n, why, err := courier.SendAgain(t.Context(), []uint64{dead[0].Seq, 999}); n != 1 || why != "" || err != nil || !slices.Equal(w.again, []string{"g20"}) {
				t.Errorf("%s: sent again %d, %v, %v", c.name, n, err, w.again)
			}
			if dead, _ := courier.Dead(t.Context(), 0, 10); len(dead) > 0 {
				t.Errorf("%s: left %v", c.name, dead)
			}
			w.give(1)
			time.Sleep(2 * time.Second)
			w.want(301, 301)
		})
	}
}

// A platform that refuses everything has it put aside slowly after the first hundred, and what can't be put aside is not passed over.
func TestAPlatformThatRefusesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		courier, stop := w.run("n1")
		defer stop()
		time.Sleep(time.Second)
		w.set(func() { w.answer = func(Batch) error { return status(400) } })
		w.give(1000)
		time.Sleep(10 * time.Second)
		count := func() int { w.mu.Lock(); defer w.mu.Unlock(); return len(w.letters) }
		first := count()
		time.Sleep(10 * time.Minute)
		if n := count(); first < lettersInARow || n > first+25 || n < first+5 {
			t.Errorf("put aside %d, and %d ten minutes later", first, n)
		}
		w.set(func() { w.full = true })
		time.Sleep(10 * time.Minute)
		n := count()
		w.set(func() { w.answer, w.full = nil, false })
		time.Sleep(5 * time.Minute)
		w.mu.Lock()
		if len(w.got)+len(w.letters) != 1000 || len(w.letters) > n+1 {
			t.Errorf("delivered %d, put aside %d", len(w.got), len(w.letters))
		}
		w.mu.Unlock()
		if ok, err := courier.Discard(t.Context(), 0); ok || err != nil {
			t.Error("discarded what is not there", err)
		}
		dead, _ := courier.Dead(t.Context(), 0, 1)
		if ok, err := courier.Discard(t.Context(), dead[0].Seq); !ok || err != nil {
			t.Error(ok, err)
		}
	})
}

// Who pauses or moves the consumer while events are delivered is heeded, and the store may be away for a while.
func TestAWebhookIsPausedAndMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.run("n1")
		defer stop()
		time.Sleep(time.Second)
		change := func(f func(*journal.Consumer)) {
			t.Helper()
			if _, err := w.consumers().Change(t.Context(), Prefix+"books", func(c *journal.Consumer, _ bool) error { f(c); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		change(func(c *journal.Consumer) { c.Paused = true })
		time.Sleep(3 * time.Second)
		w.give(10)
		time.Sleep(time.Minute)
		w.want(1, 0)
		change(func(c *journal.Consumer) { c.Paused = false })
		time.Sleep(3 * time.Second)
		w.want(1, 10)
		change(func(c *journal.Consumer) { c.At = journal.Cursor{} })
		time.Sleep(3 * time.Second)
		w.want(1, 10)

		slow := make(chan struct{})
		w.set(func() { w.answer = func(Batch) error { <-slow; return nil } })
		w.give(5)
		time.Sleep(2 * time.Second)
		change(func(c *journal.Consumer) { c.At = journal.Cursor{} }) // while a call is under way
		time.Sleep(2 * time.Second)
		w.set(func() { w.answer = nil })
		close(slow)
		time.Sleep(3 * time.Second)
		w.mu.Lock()
		if got := strings.Join(w.got, " "); !strings.HasSuffix(got, "g1 g2 g3 g4 g5 g6 g7 g8 g9 g10 g11 g12 g13 g14 g15") {
			t.Errorf("moved within a call: %s", got)
		}
		w.got = nil
		w.mu.Unlock()

		w.set(func() { w.away = true })
		w.give(3)
		time.Sleep(time.Minute)
		w.set(func() { w.away = false })
		time.Sleep(5 * time.Second)
		w.mu.Lock()
		got := slices.Compact(w.got)
		w.mu.Unlock()
		if !slices.Equal(got, []string{"g16", "g17", "g18"}) {
			t.Errorf("after the store was away: %v", got)
		}
		change(func(c *journal.Consumer) { c.Rooms = nil })
		w.Forget(t.Context(), journal.Kept{})
		time.Sleep(5 * time.Second)
		if w.place().Holder != "n1" {
			t.Error("a record that somebody deleted is made anew")
		}
	})
}

// A batch is bounded in entries and in bytes.
func TestBatchesAreBounded(t *testing.T) {
	l := line{size: mostEntries}
	large := journal.Entry{Event: bytes.Repeat([]byte("x"), mostBytes)}
	if n := len(l.cut([]journal.Entry{large, large})); n != 1 {
		t.Errorf("%d large ones", n)
	}
	if n := len(l.cut(make([]journal.Entry, 1000))); n != mostEntries {
		t.Errorf("%d small ones", n)
	}
}
