package room

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"liveroom/limit"
	"liveroom/protocol"
)

// check returns what is wrong with the memory.
func (a *answers) check() error {
	if len(a.list) > a.most {
		return fmt.Errorf("%d answers, at most %d", len(a.list), a.most)
	}
	seen := map[string]bool{}
	for _, e := range a.list {
		key := e.room + "/" + e.id
		switch {
		case seen[key]:
			return fmt.Errorf("two answers of %s", key)
		case e.state == settled && e.ack.Code != protocol.OK && e.ack.Code != protocol.Degraded:
			return fmt.Errorf("%s: a refusal with %d is remembered", key, e.ack.Code)
		case e.state == unknown && e.gift == nil:
			return fmt.Errorf("%s: nothing to store again", key)
		case e.state == settled && e.gift != nil:
			return fmt.Errorf("%s: keeps a gift that is stored", key)
		}
		seen[key] = true
	}
	return nil
}

// The memory against a map that never evicts: what it answers is always the first answer, and it never answers what
// had no effect. It may forget early only when it is full.
func TestAnswersModel(t *testing.T) {
	type known struct {
		content uint64
		ack     protocol.Ack
		expires limit.Instant
		state   answerState
	}
	rapid.Check(t, func(t *rapid.T) {
		const keep, retry = time.Minute, 10 * time.Minute
		a := answers{most: 4}
		now := limit.Instant(0)
		model := map[string]*known{}
		open := map[string]*answer{}
		serial := 0
		key := func(t *rapid.T) (room, id string) {
			return rapid.SampledFrom([]string{"a", "b"}).Draw(t, "room"), rapid.SampledFrom([]string{"1", "2", "3", "4"}).Draw(t, "id")
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if err := a.check(); err != nil {
					t.Fatal(err)
				}
			},
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")) * time.Second)
			},
			"begin": func(t *rapid.T) {
				room, id := key(t)
				content := uint64(rapid.IntRange(1, 2).Draw(t, "content"))
				k := room + "/" + id
				m := model[k]
				if m != nil && m.state != inFlight && m.expires <= now {
					delete(model, k)
					m = nil
				}
				e, what := a.begin(now, room, id, content, keep)
				switch what {
				case foundNothing:
					if m != nil && m.state == inFlight {
						t.Fatalf("%s is in flight and was forgotten", k)
					}
					model[k] = &known{content: content, expires: now.Add(keep)}
					open[k] = e
				case foundFull:
					if len(open) < a.most {
						t.Fatalf("full with %d of %d in flight", len(open), a.most)
					}
				case foundConflict:
					if m == nil || m.content == content {
						t.Fatalf("%s: conflict out of nothing", k)
					}
				case foundAnswer:
					if m == nil || m.content != content || m.state != settled || e.ack != m.ack {
						t.Fatalf("%s: want %+v, have %+v", k, m, e.ack)
					}
				case foundUnknown:
					if m == nil || m.state != unknown || m.content != content {
						t.Fatalf("%s: taken up again out of nothing", k)
					}
					m.state = inFlight
					open[k] = e
				case foundWork:
					if m == nil || m.state != inFlight || e.done == nil {
						t.Fatalf("%s: nobody works on it", k)
					}
				}
			},
			"end": func(t *rapid.T) {
				for k, e := range open {
					m := model[k]
					serial++
					ack := protocol.Ack{MID: fmt.Sprint(serial)}
					done := e.done
					switch rapid.SampledFrom([]string{"ok", "degraded", "refused", "unknown"}).Draw(t, "how") {
					case "ok":
						ack.Code = protocol.OK
						m.ack, m.state = ack, settled
					case "degraded":
						ack.Code = protocol.Degraded
						m.ack, m.state = ack, settled
					case "refused":
						e.gift = nil
						ack.Code = protocol.TooMany
						delete(model, k)
					case "unknown":
						ack.Code = protocol.Unavailable
						if e.gift == nil {
							e.gift = &pendingGift{until: now.Add(retry)}
						}
						m.state, m.expires = unknown, e.gift.until
					}
					a.end(e, ack)
					delete(open, k)
					if done != nil {
						select {
						case <-done:
						default:
							t.Fatalf("%s: who waits is not woken", k)
						}
					}
					return
				}
			},
		})
	})
}

func TestContentTellsRequestsApart(t *testing.T) {
	base := protocol.Request{Op: protocol.OpDanmaku, ID: "1", Text: "a", Color: "#ffffff", Mode: protocol.ModeTop}
	same := base
	same.ID, same.Token = "2", "t"
	if base.Content() != same.Content() {
		t.Error("the id is part of the content")
	}
	for name, change := range map[string]func(*protocol.Request){
		"op": func(r *protocol.Request) { r.Op = protocol.OpGift }, "text": func(r *protocol.Request) { r.Text = "b" },
		"color": func(r *protocol.Request) { r.Color = "" }, "mode": func(r *protocol.Request) { r.Mode = protocol.ModeScroll },
		"gift": func(r *protocol.Request) { r.Gift = "rose" }, "count": func(r *protocol.Request) { r.Count = 256 },
		"action": func(r *protocol.Request) { r.Action = protocol.ActionMute }, "user": func(r *protocol.Request) { r.User = "u" },
		"seconds": func(r *protocol.Request) { r.Seconds = 1 }, "mid": func(r *protocol.Request) { r.MID = "m" },
		"shifted": func(r *protocol.Request) { r.Text, r.Color = "a#", "ffffff" },
	} {
		other := base
		change(&other)
		if base.Content() == other.Content() {
			t.Errorf("%s is no part of the content", name)
		}
	}
}

// A kind without an action of its own would be limited as another.
func TestEveryKindIsLimited(t *testing.T) {
	said := 0
	for c := range protocol.NumClasses {
		if _, ok := protocol.ClassOf(protocol.Op(c.String())); !ok {
			continue
		}
		said++
		if a, ok := limit.ParseAction(c.String()); !ok || actions[c] != a || !slices.Contains(limit.Messages(), a) {
			t.Errorf("%s: action %v, messages are %v", c, actions[c], limit.Messages())
		}
		if c.Kind().Live != (c.Kind().Append != nil) {
			t.Errorf("%s: what goes over the bus as it is needs an event, and nothing else does", c)
		}
	}
	if actions[protocol.ClassEvent] != limit.Event {
		t.Errorf("custom events are limited as %v", actions[protocol.ClassEvent])
	}
	if n := len(limit.Messages()); n != said {
		t.Errorf("%d kinds, package limit has %d messages", said, n)
	}
}
