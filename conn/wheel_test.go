package conn

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// check holds the wheel's lists to their sessions.
func (w *wheel) check(sessions int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for slot, s := range w.slots {
		var prev *Session
		for ; s != nil; prev, s = s, s.timer.next {
			if s.timer.slot != int32(slot) || s.timer.prev != prev {
				return fmt.Errorf("a session of list %d is linked as one of %d", slot, s.timer.slot)
			}
			n++
		}
	}
	if n != sessions {
		return fmt.Errorf("%d sessions in the wheel, %d expected", n, sessions)
	}
	return nil
}

// In any order of comings, goings and turns the wheel knows exactly the sessions that are there, and visits none before
// its time or more than a step late.
func TestWheelModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const step = 10 * time.Millisecond
		// Without a socket a session's visit only looks at its phase: it asks to come back when the hello is due.
		a := &Acceptor{cfg: Config{HelloTimeout: time.Hour, Heartbeat: time.Hour}, start: time.Now()}
		w := newWheel(step)
		now := time.Duration(0)
		var in []*Session
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				s := &Session{a: a, timer: timer{slot: -1}}
				w.add(s, now+time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms"))*time.Millisecond)
				in = append(in, s)
			},
			"remove": func(t *rapid.T) {
				if len(in) == 0 {
					return
				}
				i := rapid.IntRange(0, len(in)-1).Draw(t, "i")
				w.remove(in[i])
				w.remove(in[i]) // does nothing
				in = append(in[:i], in[i+1:]...)
			},
			"turn": func(t *rapid.T) {
				now += time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond
				w.advance(now)
			},
			"": func(t *rapid.T) {
				if err := w.check(len(in)); err != nil {
					t.Fatal(err)
				}
				if got := len(w.all()); got != len(in) {
					t.Fatalf("%d of %d listed", got, len(in))
				}
			},
		})
	})
}

func TestWheelVisitsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBubble(t, Config{HelloTimeout: 100 * time.Millisecond, Heartbeat: time.Minute}, newLobby())
		for _, wait := range []time.Duration{0, 7 * time.Millisecond, 900 * time.Millisecond} {
			time.Sleep(wait)
			c, start := b.connect(t), time.Now()
			c.readFrame(t)
			if late := time.Since(start) - 100*time.Millisecond; late < 0 || late > 2*b.wheel.step {
				t.Errorf("told %v after it was due", late)
			}
			c.Close()
		}
		b.stop(t)
	})
}
