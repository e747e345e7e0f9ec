package room

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func deflating(j *JoinRequest) { j.Deflates = true }

// Where many take deflated frames, a busy room gathers longer; a quiet one, a very busy one and one with too few of them
// keep their ticks.
func TestGather(t *testing.T) {
	for _, c := range []struct {
		name        string
		from        int // members that must deflate; there is one
		every       time.Duration
		least, most int // flushes per second
	}{
		{"too few deflate", 2, 20 * time.Millisecond, 39, 50},
		{"20/s", 1, 50 * time.Millisecond, 20, 20},
		{"50/s", 1, 20 * time.Millisecond, 10, 10},
		{"250/s", 1, 4 * time.Millisecond, 15, 16},
		{"1000/s", 1, time.Millisecond, 40, 40},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, newMemoryBus(), func(cfg *Config) { cfg.Gate, cfg.Audience.DeflateFrom = gateOf(t, unlimited), c.from })
				a := w.join("demo", "a", deflating)
				w.join("demo", "b")
				talk := func(n int) {
					for i := range n {
						a.say(fmt.Sprint(time.Now().UnixNano(), i))
						time.Sleep(c.every)
					}
				}
				perSecond := int(time.Second / c.every)
				talk(5 * perSecond) // until the rate is known
				before := a.flushes()
				talk(5 * perSecond)
				online := 3 // events of that kind make a frame of their own now and then
				if n := a.flushes() - before; n < 5*c.least-1 || n > 5*c.most+online {
					t.Errorf("%d flushes in 5 s, want %d to %d per second", n, c.least, c.most)
				}
				time.Sleep(200 * time.Millisecond)
				before = a.flushes()
				a.say("after a quiet tick")
				synctest.Wait()
				if n := a.flushes() - before; n != 1 {
					t.Errorf("%d flushes at once, want 1", n)
				}
				w.stop()
			})
		})
	}
}

// A gift ends the gathering with the tick as it is configured.
func TestGiftEndsGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) { c.Gate, c.Audience.DeflateFrom = gateOf(t, unlimited), 1 })
		a := w.join("demo", "a", deflating)
		for i := range 500 {
			a.say(fmt.Sprint(i))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond)
		a.say("leaves at once")
		synctest.Wait()
		a.say("waits")
		time.Sleep(30 * time.Millisecond)
		synctest.Wait()
		before := a.flushes()
		if got := texts(a.seen("danmaku")); got[len(got)-1] != "leaves at once" {
			t.Fatalf("the room does not gather: %q", got[len(got)-1])
		}
		a.give("g", "rose", 1)
		synctest.Wait()
		if n := a.flushes() - before; n != 1 || len(a.seen("gift")) != 1 {
			t.Errorf("%d flushes and %d gifts at once, want 1 of each", n, len(a.seen("gift")))
		}
		w.stop()
	})
}

// A room makes deflated frames only when enough of its members take them.
func TestDeflateFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) { c.Gate, c.Audience.DeflateFrom = gateOf(t, unlimited), 2 })
		a := w.join("demo", "a", deflating)
		say := func() bool {
			before := a.deflatedFrames()
			for i := range 10 {
				a.say(fmt.Sprintf("%d at %d", i, time.Now().UnixNano()))
			}
			time.Sleep(50 * time.Millisecond)
			return a.deflatedFrames() > before
		}
		if say() {
			t.Error("deflated for one")
		}
		b := w.join("demo", "b", deflating)
		w.join("demo", "c")
		if !say() {
			t.Error("not deflated for two")
		}
		b.Leave()
		if say() {
			t.Error("deflated for the one who is left")
		}
		w.stop()
	})
}
