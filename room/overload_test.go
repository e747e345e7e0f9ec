package room

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"liveroom/limit"
	"liveroom/protocol"
)

// check returns what is wrong with the ladder.
func (l *ladder) check(now limit.Instant) error {
	switch {
	case l.rung < rungNormal || l.rung > rungNewcomers:
		return fmt.Errorf("rung %d", l.rung)
	case l.stepped > now:
		return fmt.Errorf("stepped in %v", l.stepped.Sub(now))
	case l.fine != never && l.fine > now:
		return fmt.Errorf("fine in %v", l.fine.Sub(now))
	}
	return nil
}

// lagBehind is what Config.Behind is by default.
const lagBehind = 40 * time.Millisecond

// The ladder against what is promised of it, for any course of the lag.
func TestLadderModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := ladder{behind: lagBehind, fine: never}
		now := limit.Instant(0).Add(time.Hour)
		step := func(t *rapid.T, lag time.Duration) {
			now = now.Add(watchEvery)
			before, stepped := l.rung, l.stepped
			l.observe(now, lag)
			switch {
			case l.rung > before && (l.rung != before+1 || lag <= lagBehind || now.Sub(stepped) < restUp):
				t.Fatalf("up from %d to %d after %v at a lag of %v", before, l.rung, now.Sub(stepped), lag)
			case l.rung < before && (lag >= lagBehind/2 || now.Sub(stepped) < restDown):
				t.Fatalf("down from %d to %d after %v at a lag of %v", before, l.rung, now.Sub(stepped), lag)
			}
			if err := l.check(now); err != nil {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"any": func(t *rapid.T) { step(t, time.Duration(rapid.IntRange(0, 500).Draw(t, "ms"))*time.Millisecond) },
			"between": func(t *rapid.T) {
				before := l.rung
				for range rapid.IntRange(1, 20).Draw(t, "readings") {
					step(t, rapid.SampledFrom([]time.Duration{lagBehind / 2, lagBehind}).Draw(t, "lag"))
				}
				if l.rung != before {
					t.Fatalf("from %d to %d between the bounds", before, l.rung)
				}
			},
			"behind for long": func(t *rapid.T) {
				lag := lagBehind + time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms"))*time.Millisecond
				for range rungNewcomers * int(restDown/watchEvery) {
					step(t, lag)
				}
				if l.rung != rungNewcomers {
					t.Fatalf("on rung %d although behind for long", l.rung)
				}
			},
			"fine for a second": func(t *rapid.T) {
				for range time.Second / watchEvery {
					step(t, time.Millisecond)
				}
				if l.rung != rungNormal {
					t.Fatalf("on rung %d although fine for a second", l.rung)
				}
			},
		})
	})
}

// A node with a queue: what comes beyond what it can do waits. Whatever it is that costs most, the ladder keeps the queue
// short, refuses in order, and is gone a second after the pulse.
func TestLadderHoldsTheQueue(t *testing.T) {
	for _, c := range []struct {
		name           string
		tick, message  time.Duration // of processor time: one tick's flush, one message
		peak           float64       // messages per second
		most, mostRung int
	}{
		{"large room", 20 * time.Millisecond, 25 * time.Microsecond, 10_000, 200, rungStretched},
		{"many messages", 5 * time.Millisecond, 25 * time.Microsecond, 60_000, 450, rungNewcomers},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := ladder{behind: lagBehind, fine: never}
			now := limit.Instant(0).Add(time.Hour)
			begin := now
			var work, worst time.Duration // processor time that waits
			top := 0
			for now.Sub(begin) < 7*time.Second {
				now = now.Add(watchEvery)
				rate := 200.0
				if at := now.Sub(begin); at > time.Second && at < 5*time.Second {
					rate = c.peak
				}
				// A refusal costs a third of a message.
				cost := c.message
				if share := l.rung - rungDanmaku + 1; share > 0 {
					cost = c.message/3 + (2*c.message/3)>>share
				}
				ticks := float64(watchEvery) / float64(25*time.Millisecond<<min(l.rung, rungStretched))
				work += time.Duration(rate*watchEvery.Seconds()*float64(cost) + ticks*float64(c.tick))
				work = max(0, work-watchEvery)
				worst = max(worst, work)
				top = max(top, l.observe(now, work))
			}
			if worst > time.Duration(c.most)*time.Millisecond || top > c.mostRung {
				t.Errorf("the queue reached %v and the ladder %d; want at most %d ms and %d", worst, top, c.most, c.mostRung)
			}
			if l.rung != rungNormal {
				t.Errorf("two seconds after the pulse: on rung %d", l.rung)
			}
		})
	}
}

// What a node that is behind gives up, in order, each with an answer and a count; gifts and moderation pass always.
func TestOverloadShedsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lag atomic.Int64
		var shed [protocol.NumClasses]atomic.Int64
		w := newWorld(t, newMemoryBus(), func(c *Config) {
			c.Gate, c.Lag = gateOf(t, unlimited), func() time.Duration { return time.Duration(lag.Load()) }
			c.Shed = func(c protocol.Class) { shed[c].Add(1) }
		})
		v := w.join("demo", "a")
		host := w.join("demo", "h", func(j *JoinRequest) { j.Who.Role = protocol.RoleHost })
		reach := func(rung int) {
			t.Helper()
			lag.Store(int64(lagBehind + time.Millisecond))
			for w.hub.overload.at.Load() < int32(rung) {
				time.Sleep(watchEvery)
				synctest.Wait()
			}
			lag.Store(int64(lagBehind)) // neither worse nor better
			time.Sleep(2 * watchEvery)
			synctest.Wait()
			if at := w.hub.overload.at.Load(); at != int32(rung) {
				t.Fatalf("on rung %d, want %d", at, rung)
			}
		}
		serial := 0
		passed := func(send func(i int) event) (n int) {
			for range 64 {
				serial++
				e := send(serial)
				switch {
				case e.Code == 200:
					n++
				case e.Reason != "try_later" || e.Retry < shedRetry.Milliseconds():
					t.Fatalf("shed with %+v", e)
				}
			}
			return n
		}
		say := func(i int) event { return v.say(fmt.Sprint("text ", i)) }
		tap := func(int) event { return v.like(1) }
		give := func(i int) event { return v.give(fmt.Sprint("g", i), "rose", 1) }
		for _, c := range []struct{ rung, likes, danmaku int }{
			{rungNormal, 64, 64}, {rungStretched, 64, 64}, {rungLikes, 0, 64}, {rungDanmaku, 0, 32}, {rungDanmaku + 1, 0, 16}, {rungChat, 0, 0}, {rungNewcomers, 0, 0},
		} {
			reach(c.rung)
			if likes, danmaku, gifts := passed(tap), passed(say), passed(give); likes != c.likes || danmaku != c.danmaku || gifts != 64 {
				t.Errorf("rung %d: %d likes, %d danmaku, %d gifts of 64 each; want %d, %d, all", c.rung, likes, danmaku, gifts, c.likes, c.danmaku)
			}
			if e := host.moderate(protocol.ActionAnnounce, func(r *protocol.Request) { r.Text = "hello" }); e.Code != 200 {
				t.Errorf("rung %d: moderation is refused: %+v", c.rung, e)
			}
			if retry, ok := w.hub.Newcomers(); ok != (c.rung < rungNewcomers) || !ok && retry <= 0 {
				t.Errorf("rung %d: newcomers %v, back in %v", c.rung, ok, retry)
			}
			for i, s := range stages {
				if on := testutil.ToFloat64(w.hub.cfg.Metrics.overload[i]); (on == 1) != (c.rung >= s.rung) {
					t.Errorf("rung %d: stage %s is %v", c.rung, s.name, on)
				}
			}
		}
		if likes, danmaku := shed[protocol.ClassLike].Load(), shed[protocol.ClassDanmaku].Load(); likes != 5*64 || danmaku != 32+48+2*64 {
			t.Errorf("%d likes and %d danmaku counted as shed", likes, danmaku)
		}

		lag.Store(0)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := passed(say) + passed(tap); n != 128 || w.hub.stretched(25*time.Millisecond) != 25*time.Millisecond {
			t.Errorf("a second later %d of 128 pass, a tick is %v", n, w.hub.stretched(25*time.Millisecond))
		}
		w.stop()
	})
}

// Ticks stretch while the node is behind; what must not be lost waits less than danmaku.
func TestOverloadStretchesTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lag atomic.Int64
		w := newWorld(t, newMemoryBus(), func(c *Config) {
			c.Gate, c.Lag = gateOf(t, unlimited), func() time.Duration { return time.Duration(lag.Load()) }
		})
		v := w.join("demo", "a")
		time.Sleep(5 * time.Second)
		lag.Store(int64(lagBehind + time.Millisecond))
		for w.hub.overload.at.Load() < rungStretched {
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		lag.Store(int64(lagBehind))
		wait := func(kind string, send func()) time.Duration {
			time.Sleep(time.Second)
			v.say("leaves at once")
			synctest.Wait()
			begin, before := time.Now(), len(v.seen(kind))
			for send(); len(v.seen(kind)) == before; synctest.Wait() {
				time.Sleep(time.Millisecond)
			}
			return time.Since(begin)
		}
		if d := wait("danmaku", func() { v.say("one") }); d != 200*time.Millisecond {
			t.Errorf("a danmaku waits %v, want 200 ms", d)
		}
		if d := wait("gift", func() { v.give("g", "rose", 1) }); d != 100*time.Millisecond {
			t.Errorf("a gift waits %v, want 100 ms", d)
		}
		w.stop()
	})
}

// While the node is behind, answers to danmaku and likes go with the room's next flush, whether that shows anything or not;
// a gift's goes at once.
func TestOverloadAnswersWithTheNextFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) {
			c.Gate, c.Lag = gateOf(t, unlimited), func() time.Duration { return lagBehind + time.Millisecond }
		})
		v := w.join("demo", "a")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		frames, acks := v.flushes(), len(v.told("ack"))
		for i := range 10 {
			v.Receive(&protocol.Request{Op: protocol.OpLike, ID: fmt.Sprint("first ", i), Count: 1})
		}
		synctest.Wait()
		if n := len(v.told("ack")) - acks; n == 0 {
			t.Error("after a quiet tick: no answer goes at once")
		}
		for i := range 10 {
			v.Receive(&protocol.Request{Op: protocol.OpDanmaku, ID: fmt.Sprint("then ", i), Text: fmt.Sprint(i)})
		}
		v.Receive(&protocol.Request{Op: protocol.OpPing, ID: "p"}) // takes them along
		v.Receive(&protocol.Request{Op: protocol.OpLike, ID: "last", Count: 1})
		synctest.Wait()
		before := len(v.told("ack")) - acks
		time.Sleep(200*time.Millisecond - 1)
		synctest.Wait()
		if n := len(v.told("ack")) - acks; n != before || n < 20 {
			t.Errorf("%d answers within the tick, %d at its begin", n, before)
		}
		time.Sleep(1 * time.Nanosecond)
		synctest.Wait()
		if n := len(v.told("ack")) - acks; n != 21 {
			t.Errorf("%d of 21 answers after the tick", n)
		}
		if v.flushes() != frames {
			t.Error("something was shown")
		}
		if e := v.give("g", "rose", 1); e.Code != 200 {
			t.Errorf("gift: %+v", e)
		}
		w.stop()
	})
}
