package room

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

const paced = `
rules:
  - {name: pace, action: [danmaku, gift, like], scope: room, algorithm: leaky_bucket, rate: 5, burst: 6, exempt: {roles: host}}
`

// A leaky bucket of 5/s lets messages out every 200 ms, in order, and only those wait who have something to wait for.
func TestLeakyBucketsPaceARoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) { c.Gate = gateOf(t, paced) })
		a, b, host := w.join("demo", "a"), w.join("demo", "b"), w.join("demo", "h", as(protocol.RoleHost))
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range 3 {
				wantCode(t, a.say(fmt.Sprint("a", i)), protocol.OK, "")
			}
		})
		synctest.Wait() // a0 is out, a1 waits for 200 ms
		wg.Go(func() { wantCode(t, b.give("g", "rose", 1), protocol.OK, "") })
		synctest.Wait() // 400 ms
		for i := range 2 {
			wantCode(t, host.say(fmt.Sprint("host ", i)), protocol.OK, "")
		}
		if waited := time.Since(start); waited != 0 {
			t.Fatalf("the host is exempt and waited %v", waited)
		}
		time.Sleep(100 * time.Millisecond)
		if got := len(a.seen("danmaku")) - 2; got != 1 {
			t.Fatalf("%d of a's at 100 ms, want the first alone", got)
		}
		wg.Wait()
		// a2 was sent when a1 was out, behind the gift.
		if waited := time.Since(start); waited != 600*time.Millisecond {
			t.Fatalf("all are out after %v, want 600 ms", waited)
		}
		time.Sleep(time.Second)
		var at []int64
		for _, e := range append(a.seen("danmaku"), a.seen("gift")...) {
			if e.User.ID != "h" {
				at = append(at, e.TS-start.UnixMilli())
			}
		}
		if !slices.Equal(at, []int64{0, 200, 600, 400}) {
			t.Fatalf("out at %d ms", at)
		}
		w.stop()
	})
}

// A queue is bounded, and who is muted while waiting says nothing more.
func TestPacedMessagesMayStillBeRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) { c.Gate = gateOf(t, paced) })
		a, host := w.join("demo", "a"), w.join("demo", "h", as(protocol.RoleHost))
		others := make([]*viewer, 5)
		var wg sync.WaitGroup
		wantCode(t, a.like(1), protocol.OK, "")
		for i := range others {
			others[i] = w.join("demo", fmt.Sprint("o", i))
			wg.Go(func() { others[i].say(fmt.Sprint("from ", i)) })
		}
		synctest.Wait()
		e := a.say("one too many")
		wantCode(t, e, protocol.TooMany, protocol.ReasonRateLimited)
		if e.Rule != "pace" || e.Retry < 201 || e.Retry > 300 {
			t.Fatalf("%+v", e)
		}
		wantCode(t, host.moderate(protocol.ActionMute, target("o4", 60)), protocol.OK, "")
		wg.Wait()
		codes := map[int]int{}
		for _, o := range others {
			codes[o.told("ack")[0].Code]++
		}
		if last := others[4].told("ack")[0]; last.Reason != string(protocol.ReasonMuted) || codes[int(protocol.OK)] != 4 {
			t.Fatalf("%v, the muted one: %+v", codes, last)
		}
		w.stop()
	})
}
