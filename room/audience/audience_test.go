package audience

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"liveroom/limit"
	"liveroom/protocol"
)

// viewer takes what it is given and counts it.
type viewer struct {
	spot    Spot
	danmaku int
	gifts   int

	released int
}

func (v *viewer) Spot() *Spot { return &v.spot }
func (v *viewer) Release()    { v.released++ }
func (v *viewer) Deliver(b *protocol.Broadcast) {
	v.danmaku += b.Count(protocol.ClassDanmaku)
	v.gifts += b.Count(protocol.ClassGift)
}

// manual returns an audience whose runner is the test, and its clock.
func manual(c Config) (*Audience[*viewer], *limit.Instant) {
	now := limit.Instant(time.Hour)
	return New[*viewer]("r", &Env{
		Config: c.WithDefaults(), Clock: func() limit.Instant { return now }, Wall: func(i limit.Instant) int64 { return int64(i) / 1e6 },
		Stretch: func(d time.Duration) time.Duration { return d }, Run: func(func()) bool { return true }, Metrics: NewMetrics(nil),
	}), &now
}

func danmaku(mid string) []byte {
	return protocol.AppendDanmaku(nil, protocol.Danmaku{MID: mid, User: protocol.User{ID: "u"}, Text: "hello", TS: 1})
}

// An answer goes with the message that it answers, which leaves at once; alone when that does not come, or not at once.
func TestAnAnswerGoesWithItsMessage(t *testing.T) {
	a, now := manual(Config{Tick: 25 * time.Millisecond})
	v := &viewer{}
	a.Join(v, 0, nil)
	// settle shows what is due now, and returns for how long nothing is.
	settle := func() (wait time.Duration) {
		for more := true; more && wait == 0; {
			wait, more = a.look()
		}
		return wait
	}
	settle()
	*now = now.Add(time.Second)
	if !a.OweSoon(v) {
		t.Fatal("a quiet room does not take the answer")
	}
	*now = now.Add(100 * time.Microsecond)
	if wait := settle(); wait <= 0 || wait > patience || v.released != 0 {
		t.Fatalf("waits %v, released %d times", wait, v.released)
	}
	a.Message(protocol.ClassDanmaku, danmaku("m1"))
	settle()
	if v.danmaku != 1 || v.released != 1 {
		t.Fatalf("%d danmaku, released %d times", v.danmaku, v.released)
	}
	if a.OweSoon(v) {
		t.Error("the next message leaves with the next tick only, and the answer was to wait")
	}
	*now = now.Add(time.Second)
	if !a.OweSoon(v) {
		t.Fatal("a quiet room does not take the answer")
	}
	if *now = now.Add(settle()); v.released != 1 {
		t.Fatalf("released %d times", v.released)
	}
	if settle(); v.released != 2 || a.tick.running {
		t.Errorf("its message did not come: released %d times, runner left: %v", v.released, a.tick.running)
	}
	*now = now.Add(time.Second)
	if a.Message(protocol.ClassDanmaku, danmaku("m2")); a.OweSoon(v) {
		t.Error("the message is there already, and the answer was to wait")
	}
}

// Whatever comes and goes, the sums hold, and each viewer gets exactly what was said while it was here.
func TestAudienceModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, now := manual(Config{})
		owed := map[*viewer][2]int{} // danmaku and gifts that each is to have got once all is flushed
		said, total, seq := 0, int64(0), uint64(0)
		flush := func() {
			for more := true; more && a.tick.running; {
				var wait time.Duration
				wait, more = a.look()
				*now = now.Add(wait)
			}
		}
		each := func(n, gifts int) {
			for v, o := range owed {
				owed[v] = [2]int{o[0] + n, o[1] + gifts}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if err := a.check(); err != nil {
					t.Fatal(err)
				}
				if len(owed) != a.shards.size {
					t.Fatalf("%d viewers, %d are here", len(owed), a.shards.size)
				}
			},
			"join": func(t *rapid.T) {
				v := &viewer{spot: Spot{Order: rapid.IntRange(0, 9).Draw(t, "order")}}
				view := a.Join(v, 0, nil)
				owed[v] = [2]int{a.tick.unshown, int(a.gifts.last - a.gifts.shown)} // the rest it was told
				if want := min(said, a.history.most) - a.tick.unshown; len(view.Recent) != max(0, want) || view.Gift != a.gifts.shown {
					t.Fatalf("told %d recent ones of %d said, %d unshown; gift %d", len(view.Recent), said, a.tick.unshown, view.Gift)
				}
			},
			"leave": func(t *rapid.T) {
				flush() // else what waits would be lost to whoever leaves, as it should
				for v, want := range owed {
					a.Leave(v, 0)
					if v.danmaku != want[0] || v.gifts != want[1] {
						t.Fatalf("got %d danmaku and %d gifts, want %v", v.danmaku, v.gifts, want)
					}
					delete(owed, v)
					return
				}
			},
			"danmaku": func(*rapid.T) {
				if a.tick.unshown < a.history.most {
					said++
					a.Message(protocol.ClassDanmaku, danmaku(fmt.Sprint(said)))
					each(1, 0)
				}
			},
			"gift": func(t *rapid.T) {
				next := seq + uint64(rapid.IntRange(0, 1).Draw(t, "new"))
				a.Gift(protocol.StoredGift{Seq: next, Prev: seq, Event: protocol.AppendGift(nil, protocol.Gift{Gift: "rose", Count: 1, TS: 1})})
				each(0, int(next-seq))
				seq = next
			},
			"likes": func(t *rapid.T) {
				total += int64(rapid.IntRange(-2, 5).Draw(t, "more"))
				a.Likes(total)
			},
			"elsewhere": func(t *rapid.T) { a.Elsewhere(rapid.IntRange(0, 3).Draw(t, "elsewhere"), 0) },
			"flush":     func(*rapid.T) { flush() },
			"time": func(t *rapid.T) {
				*now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			},
		})
	})
}

// check returns what is wrong with the audience.
func (a *Audience[V]) check() error {
	switch {
	case a.crowd.here != a.shards.size:
		return fmt.Errorf("%d members, counted %d", a.shards.size, a.crowd.here)
	case a.Online() != a.crowd.online():
		return fmt.Errorf("online is %d, told is %d", a.crowd.online(), a.Online())
	case a.likes.shown > a.likes.total:
		return fmt.Errorf("likes: shown %d of %d", a.likes.shown, a.likes.total)
	case a.gifts.shown > a.gifts.last:
		return fmt.Errorf("gifts: shown %d, had %d", a.gifts.shown, a.gifts.last)
	case a.tick.batch.Len()+len(a.tick.owed) > 0 && !a.tick.running:
		return fmt.Errorf("%d events wait and nobody shows them", a.tick.batch.Len())
	}
	return a.shards.check()
}

// quiet returns an audience of n viewers that has nothing to show.
func quiet(n, workers int) *Audience[*viewer] {
	a, now := manual(Config{Workers: workers, OnlineEvery: 1 << 40})
	for i := range n {
		a.Join(&viewer{spot: Spot{Order: i}}, 0, nil)
	}
	a.crowd.shown = a.crowd.count() // the count is not to be shown any more
	*now = now.Add(time.Second)
	a.look()
	return a
}

func (a *Audience[V]) flushNow(event []byte) {
	a.tick.flushed = a.env.Clock().Add(-a.env.Tick)
	a.Message(protocol.ClassDanmaku, event)
	a.look()
}

// What a flush allocates does not grow with the viewers: it is the tick's batch and frame.
func TestFlushAllocatesNothingPerViewer(t *testing.T) {
	event := protocol.AppendDanmaku(nil, protocol.Danmaku{MID: "m", User: protocol.User{ID: "u"}, Text: "hello", TS: 1})
	for _, n := range []int{1, 1000, 5000} {
		a := quiet(n, 1)
		got := testing.AllocsPerRun(200, func() { a.flushNow(event) })
		t.Logf("%d viewers: %v allocations", n, got)
		if got > 5 {
			t.Errorf("%d viewers: %v allocations per flush", n, got)
		}
	}
}

func BenchmarkFlush(b *testing.B) {
	event := protocol.AppendDanmaku(nil, protocol.Danmaku{MID: "m", User: protocol.User{ID: "u"}, Text: "hello", TS: 1})
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint("viewers=", n), func(b *testing.B) {
			a := quiet(n, 1)
			b.ReportAllocs()
			for b.Loop() {
				a.flushNow(event)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/viewer")
		})
	}
}
