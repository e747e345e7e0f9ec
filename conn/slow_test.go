package conn

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

// tickOf is a broadcast of some danmaku, and a gift and a like with a total, when they are not 0.
func tickOf(danmaku int, gift uint64, total int64) *protocol.Broadcast {
	var b protocol.Batch
	for i := range danmaku {
		b.Add(protocol.ClassDanmaku, protocol.AppendDanmaku(nil, protocol.Danmaku{MID: "m", User: protocol.User{ID: "u"}, Text: fmt.Sprint("text ", i), TS: 1}))
	}
	if gift != 0 {
		b.Add(protocol.ClassGift, protocol.AppendStoredGift(nil, protocol.StoredGift{Seq: gift, Prev: gift - 1,
			Event: protocol.AppendGift(nil, protocol.Gift{User: protocol.User{ID: "u"}, Gift: "rose", Count: 1, Combo: 1, TS: 1})}))
	}
	if total != 0 {
		b.Add(protocol.ClassLike, protocol.AppendLike(nil, 1, total))
	}
	return b.Build()
}

func (a *Acceptor) delivered(c protocol.Class) int {
	return int(a.cfg.Metrics.sum(func(s *counters) *atomic.Uint64 { return &s.delivered[c] }))
}

func (a *Acceptor) dropped(c protocol.Class, why dropReason) int {
	return int(a.cfg.Metrics.sum(func(s *counters) *atomic.Uint64 { return &s.dropped[c][why] }))
}

// A viewer who falls behind gets gifts and control in full, and is told once, exactly, how many danmaku it did not get;
// then the newest like. Nothing is lost that was not counted.
func TestSlowViewerMissesDanmakuAndIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBubble(t, Config{QueueFrames: 4, HardFrames: 100, WriteTimeout: time.Hour, PongTimeout: time.Hour}, newLobby())
		c, s := b.join(t)
		const ticks, each = 40, 3
		for i := range ticks {
			s.Deliver(tickOf(each, uint64(i+1), int64(100+i)))
			synctest.Wait()
			if err := s.check(); err != nil {
				t.Fatal(err)
			}
		}
		if st := s.Stats(); st.Missed == 0 || st.QueuedFrames == 0 {
			t.Fatalf("stats %+v", st)
		}
		var seen, missed, announced int
		var gift uint64
		var total int64
		for seen+missed < ticks*each {
			for _, e := range decode(t, c.readFrame(t).payload) {
				switch e.Ev {
				case "danmaku":
					seen++
				case "gift":
					if e.Seq != gift+1 {
						t.Fatalf("gift %d after %d", e.Seq, gift)
					}
					gift = e.Seq
				case "missed":
					missed += e.Danmaku
					announced++
				case "like":
					total = e.Total
				}
			}
		}
		if announced != 1 || gift != ticks || total != 100+ticks-1 || missed != int(s.Stats().Missed) {
			t.Fatalf("announced %d times, gift %d, total %d, missed %d of %d", announced, gift, total, missed, s.Stats().Missed)
		}
		s.Deliver(tickOf(1, 0, 0)) // healthy again
		if e := decode(t, c.readFrame(t).payload); e[0].Ev != "danmaku" {
			t.Fatalf("got %+v", e)
		}
		synctest.Wait()
		if got := b.delivered(protocol.ClassDanmaku); got != seen+1 {
			t.Errorf("%d danmaku counted, %d seen", got, seen+1)
		}
		if got := b.dropped(protocol.ClassDanmaku, dropSlow); got != missed {
			t.Errorf("%d danmaku counted as dropped, %d announced", got, missed)
		}
		if got := b.delivered(protocol.ClassLike) + b.dropped(protocol.ClassLike, dropReplaced); got != ticks {
			t.Errorf("%d of %d likes accounted for", got, ticks)
		}
		if got := b.delivered(protocol.ClassGift); got != ticks {
			t.Errorf("%d gifts counted", got)
		}
		c.Close()
		b.stop(t)
	})
}

// Gifts beyond the hard bound end the session at once; it leaves the room and comes back to resume.
func TestGiftsAreNeverLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBubble(t, Config{QueueFrames: 4, HardFrames: 8}, newLobby())
		c, s := b.join(t)
		n := 0
		for b.lobby.leaves() == 0 {
			n++
			s.Deliver(tickOf(1, uint64(n), 0))
			synctest.Wait()
			if n > 20 {
				t.Fatal("the session goes on")
			}
		}
		start := time.Now()
		c.readFrame(t) // the one that was on the wire
		if f := c.readFrame(t); f.code() != 4001 {
			t.Fatalf("got %+v", f)
		}
		c.drain()
		if d := time.Since(start); d > slowLinger+slack {
			t.Fatalf("gone after %v", d)
		}
		b.running.Wait()
		if got := b.delivered(protocol.ClassGift) + b.dropped(protocol.ClassGift, dropClosed); got != n {
			t.Errorf("%d of %d gifts accounted for", got, n)
		}
		if got := closes(&node{Acceptor: b.Acceptor}, "4001"); got != 1 {
			t.Errorf("%d closes", got)
		}
		c.Close()
		b.stop(t)
	})
}

func TestAnswersBeyondTheirLaneEndTheSession(t *testing.T) {
	for name, cfg := range map[string]Config{"frames": {ControlFrames: 5}, "bytes": {ControlBytes: 300}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := startBubble(t, cfg, newLobby())
				c, s := b.join(t)
				for range 30 {
					s.Control([]byte(`{"ev":"ack","id":"an-id-of-some-length","code":200,"mid":"m"}`))
				}
				b.running.Wait()
				if got := closes(&node{Acceptor: b.Acceptor}, "4001"); got != 1 {
					t.Errorf("%d closes", got)
				}
				c.Close()
				b.stop(t)
			})
		})
	}
}

// coder/websocket#405: a peer that stops reading holds nobody up and is gone after the write timeout.
func TestFrozenReader(t *testing.T) {
	const timeout = 2 * time.Second // what a healthy reader needs on a busy machine, and more
	n := startNode(t, Config{WriteTimeout: timeout}, newLobby())
	_, slow := rawJoin(t, n)
	ws, healthy := n.join(t)
	ws.SetReadLimit(-1)
	got := make(chan int)
	go func() {
		count := 0
		for {
			_, b, err := ws.Read(testCtx(t))
			if err != nil {
				got <- count
				return
			}
			var events []json.RawMessage
			if err := json.Unmarshal(b, &events); err != nil {
				t.Errorf("%v", err)
			}
			count += len(events)
		}
	}()
	start, sent, slowest := time.Now(), 0, time.Duration(0)
	for n.lobby.leaves() == 0 {
		if time.Since(start) > 15*time.Second {
			t.Fatal("the frozen reader stays")
		}
		b := tickOf(500, 0, 0) // some 45 KB
		before := time.Now()
		slow.Deliver(b)
		slowest = max(slowest, time.Since(before))
		eventually(t, func() bool { return healthy.Stats().QueuedFrames == 0 })
		healthy.Deliver(b)
		sent += 500
	}
	eventually(t, func() bool { return n.sessions.Load() == 1 })
	if took := time.Since(start); took > 2*timeout+time.Second {
		t.Errorf("gone after %v", took)
	}
	if slowest > timeout/2 {
		t.Errorf("a delivery to the frozen reader took %v", slowest)
	}
	if got := closes(n, "4001"); got != 1 {
		t.Errorf("%d closes with 4001", got)
	}
	eventually(t, func() bool { return healthy.Stats().QueuedFrames == 0 })
	healthy.Close(protocol.Refusal{Code: protocol.CloseKicked})
	if count := <-got; count != sent {
		t.Errorf("the healthy viewer got %d of %d", count, sent)
	}
}
