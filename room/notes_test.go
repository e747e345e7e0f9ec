package room

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"liveroom/protocol"
)

// noted are the notes with some text in them, each without its time.
func (b *memoryBus) noted(text string) (out []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.notes {
		if strings.Contains(n, text) {
			n, _, _ = strings.Cut(n, `,"ts":`)
			out = append(out, n)
		}
	}
	return out
}

// Back ends are told that a room came to be, how many came and went in ten seconds, and of each where that is asked for.
func TestBackEndsAreToldOfRoomsAndVisits(t *testing.T) {
	for _, sessions := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			bus := newMemoryBus()
			w := newWorld(t, bus, func(c *Config) { c.NoteSessions = sessions })
			a, b := w.join("demo", "a"), w.join("demo", "b")
			b.Leave()
			time.Sleep(visitsEvery + time.Second)
			want := []string{`demo {"ev":"audience","node":"n1","joined":2,"left":1,"here":1,"online":1`}
			if got := bus.noted("audience"); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			time.Sleep(2 * visitsEvery)
			a.Leave()
			w.stop() // tells what is left
			want = append(want, `demo {"ev":"audience","node":"n1","joined":0,"left":1,"here":0,"online":0`)
			if got := bus.noted("audience"); !slices.Equal(got, want) {
				t.Errorf("at the end: got %q, want %q", got, want)
			}
			if got := bus.noted(`"made"`); len(got) != 1 || got[0] != `demo {"ev":"room","action":"made","node":"n1"` {
				t.Errorf("made: %q", got)
			}
			var who string
			for _, n := range bus.noted(`"ev":"session"`) {
				for _, action := range []string{"joined", "left"} {
					for _, user := range []string{"a", "b"} {
						if strings.Contains(n, `"action":"`+action+`"`) && strings.Contains(n, `{"id":"`+user+`"`) {
							who += fmt.Sprint(user, " ", action, " ")
						}
					}
				}
			}
			if want := map[bool]string{true: "a joined b joined b left a left "}[sessions]; who != want {
				t.Errorf("sessions: %q, want %q", who, want)
			}
		})
	}
}

// What was shown to its sender alone is kept, marked, unless danmaku are not; a custom event with whom it was for. What can't be kept is
// counted, and nobody waits.
func TestBackEndsAreToldOfWhatFewSaw(t *testing.T) {
	for _, off := range []bool{false, true} {
		bus := newMemoryBus()
		w := newWorld(t, bus, func(c *Config) {
			c.NoDanmaku, c.EventTypes = off, []string{"poll"}
			c.Gate = gateOf(t, `
rules:
  - {name: room, action: danmaku, scope: room, rate: 0, burst: 1, degrade: {rate: 0, burst: 5}}
  - {name: events, action: event, scope: room, rate: 10, burst: 10}
`)
		})
		a := w.join("demo", "a")
		a.say("seen")
		a.say("hidden")
		if got := bus.noted(`"hidden":true`); off == (len(got) == 1) {
			t.Errorf("off %v: hidden %q", off, got)
		}
		if ack := w.hub.Emit(t.Context(), "demo", service, poll("1", to(protocol.ToUser, "a"))); ack.Code != protocol.OK {
			t.Fatal(ack)
		}
		if ack := w.hub.Cast(t.Context(), service.Who, poll("2")); ack.Code != protocol.OK {
			t.Fatal(ack)
		}
		bus.mu.Lock()
		one, all := bus.notes[len(bus.notes)-2], bus.notes[len(bus.notes)-1]
		bus.mu.Unlock()
		if !strings.HasPrefix(one, `demo {"ev":"custom","mid":`) || !strings.HasSuffix(one, `"to":"user","user":"a","class":"control"}`) {
			t.Errorf("to a user: %s", one)
		}
		if !strings.HasPrefix(all, ` {"ev":"custom","mid":`) {
			t.Errorf("to all: %s", all)
		}
		bus.set(func(b *memoryBus) { b.down = true })
		a.say("also hidden")
		if got, want := testutil.ToFloat64(w.hub.cfg.Metrics.unnoted), map[bool]float64{false: 1}[off]; got != want {
			t.Errorf("off %v: %v not kept, want %v", off, got, want)
		}
		bus.set(func(b *memoryBus) { b.down = false })
	}
}
