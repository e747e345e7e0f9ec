package room

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/protocol"
)

func TestFirstMessageLeavesAtOnceThenOncePerTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) { c.Gate = gateOf(t, unlimited) })
		a := w.join("demo", "a")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		before := a.flushes()

		a.say("one")
		synctest.Wait()
		if got := texts(a.seen("danmaku")); !slices.Equal(got, []string{"one"}) {
			t.Fatalf("after a quiet tick: want the message at once, have %q", got)
		}
		a.say("two")
		a.say("three")
		synctest.Wait()
		if got := len(a.seen("danmaku")); got != 1 {
			t.Fatalf("within the tick: want 1 danmaku, have %d", got)
		}
		time.Sleep(24 * time.Millisecond)
		synctest.Wait()
		if got := len(a.seen("danmaku")); got != 1 {
			t.Fatalf("after 24 ms: want 1 danmaku, have %d", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got, n := texts(a.seen("danmaku")), a.flushes()-before; !slices.Equal(got, []string{"one", "two", "three"}) || n != 2 {
			t.Fatalf("after the tick: want three danmaku in 2 flushes, have %q in %d", got, n)
		}
		if !a.room.audience.Idle() {
			t.Fatal("the runner outlives what there was to show")
		}
		w.stop()
	})
}

func TestSteadyTrafficFlushesOncePerTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) { c.Gate = gateOf(t, unlimited) })
		a := w.join("demo", "a")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		before := a.flushes()
		for i := range 1000 {
			a.say(fmt.Sprint(i))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		if n := a.flushes() - before; n < 40 || n > 41 {
			t.Fatalf("1000 messages in a second at a tick of 25 ms: want 40 flushes, have %d", n)
		}
		if n := len(a.seen("danmaku")); n != 1000 {
			t.Fatalf("want 1000 danmaku, have %d", n)
		}
		w.stop()
	})
}

// A room that is behind holds a bounded frame and tells its viewers what is missing from it.
func TestTicksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		w := newWorld(t, newMemoryBus(), func(c *Config) { c.Gate, c.Metrics = gateOf(t, unlimited), NewMetrics(reg) })
		a := w.join("demo", "a")
		a.say("leaves at once")
		synctest.Wait()
		const sent = 15_000
		f := (*feed)(a.room)
		for i := range sent {
			f.Message(protocol.ClassDanmaku, protocol.AppendDanmaku(nil, protocol.Danmaku{MID: fmt.Sprint(i), User: protocol.User{ID: "b"}, Text: "some text", TS: time.Now().UnixMilli()}))
		}
		f.Gift(protocol.StoredGift{Seq: 1, Event: protocol.AppendGift(nil, protocol.Gift{Gift: "rose", Count: 1})})
		time.Sleep(time.Second)
		missed, shown := a.seen("missed"), len(a.seen("danmaku"))-1
		lost := counted(t, reg, "liveroom_tick_overflow_total")
		if len(missed) != 1 || lost == 0 || shown+lost != sent || len(a.seen("gift")) != 1 {
			t.Fatalf("sent %d, shown %d, counted as lost %d, told %+v", sent, shown, lost, missed)
		}
		if got := len(a.live.frames[1]); got > 1<<20+1024 {
			t.Fatalf("a frame of %d bytes", got)
		}
		if v := w.join("demo", "c"); len(v.at("danmaku")) != 50 {
			t.Fatalf("a newcomer sees %d", len(v.at("danmaku")))
		}
		w.stop()
	})
}

// counted reads a counter without labels.
func counted(t *testing.T, reg *prometheus.Registry, name string) int {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return int(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	t.Fatalf("no %s", name)
	return 0
}

// Whoever joins amid traffic sees recent danmaku and then live ones, without a gap and without a double.
func TestJoinHasNoGapAndNoDouble(t *testing.T) {
	const messages, joins = 400, 60
	w := newWorld(t, newMemoryBus(), func(c *Config) {
		c.Gate = gateOf(t, unlimited)
		c.Audience.HistoryCount = messages
		c.Audience.Tick = time.Millisecond
	})
	speaker := w.join("demo", "speaker")
	var sent sync.WaitGroup
	sent.Go(func() {
		for i := range messages {
			speaker.say(fmt.Sprint(i))
		}
	})
	viewers := make([]*viewer, joins)
	for i := range viewers {
		viewers[i] = w.join("demo", fmt.Sprint("v", i))
	}
	sent.Wait()
	last := speaker.say("the end")
	for i, v := range append(viewers, speaker) {
		await := func() []event { return append(v.at("danmaku"), v.seen("danmaku")...) }
		eventually(t, func() bool {
			all := await()
			return len(all) > 0 && all[len(all)-1].MID == last.MID
		})
		all := await()
		if len(all) != messages+1 {
			t.Fatalf("viewer %d: want %d danmaku, have %d (%d of them with the welcome)", i, messages+1, len(all), len(v.at("danmaku")))
		}
		for n, e := range all[:messages] {
			if e.Text != fmt.Sprint(n) {
				t.Fatalf("viewer %d: danmaku %d is %q", i, n, e.Text)
			}
		}
	}
}

// CASES 13: one sender's messages come in one order, whatever the number of shards and the joins and leaves meanwhile.
func TestOrderPerSenderOverManyShards(t *testing.T) {
	const senders, messages, viewers = 4, 50, 1200
	w := newWorld(t, newMemoryBus(), func(c *Config) {
		c.Gate = gateOf(t, unlimited)
		c.Audience.Tick = time.Millisecond
		c.Audience.Workers = 4
	})
	all := make([]*viewer, viewers)
	for i := range all {
		all[i] = w.join("demo", fmt.Sprint("v", i))
	}
	var sent sync.WaitGroup
	for i := range senders {
		sent.Go(func() {
			for n := range messages {
				all[i].Receive(danmakuOf(fmt.Sprint(i, "-", n), fmt.Sprint(n)))
			}
		})
	}
	for i := viewers / 2; i < viewers; i++ {
		all[i].Leave()
	}
	sent.Wait()
	for i, v := range all[:20] {
		eventually(t, func() bool { return len(v.seen("danmaku")) == senders*messages })
		next := map[string]int{}
		for _, e := range v.seen("danmaku") {
			if e.Text != fmt.Sprint(next[e.User.ID]) {
				t.Fatalf("viewer %d: message of %s is %q, want %d", i, e.User.ID, e.Text, next[e.User.ID])
			}
			next[e.User.ID]++
		}
	}
	if err := w.hub.check(); err != nil {
		t.Fatal(err)
	}
}
