package room

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
	"liveroom/room/people"
)

// online is the last count that the viewer was told, and of how many persons.
func (v *viewer) online() string {
	all := v.seen("online")
	if len(all) == 0 {
		return "nothing"
	}
	return fmt.Sprint(all[len(all)-1].Count, " ", all[len(all)-1].People)
}

// CASES: two windows of a person count once, in the welcome, in what viewers are told and in what the host sees.
func TestPeopleAreNotSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), nil)
		a := w.join("demo", "a")
		w.join("demo", "a")
		b := w.join("demo", "b")
		time.Sleep(3 * time.Second)
		if got := a.online(); got != "3 2" {
			t.Errorf("told %s", got)
		}
		if got := b.at("welcome")[0].Room; got.Online != 3 || got.People != 2 {
			t.Errorf("welcome %+v", got)
		}
		time.Sleep(10 * time.Second)
		r, _ := w.hub.Room("demo")
		if i := r.Info(); i.Online != 3 || i.People != 2 || len(i.Shows) != 1 || i.Shows[0].People != 2 || i.Shows[0].Peak != 2 {
			t.Errorf("info %+v", i)
		}
		b.Leave()
		time.Sleep(3 * time.Second)
		if got := a.online(); got != "2 1" {
			t.Errorf("told %s", got)
		}
	})
}

// What was told of a show does not fall when the node dies, nor its peak; a show ends with the room's closing, and another begins with its opening.
func TestShowsSurviveTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		w := newWorld(t, bus, nil)
		for i := range 30 {
			w.join("demo", fmt.Sprint("u", i)).say(fmt.Sprint("hello ", i))
		}
		time.Sleep(30 * time.Second)
		before, err := w.hub.Shows(t.Context(), "demo")
		if err != nil || len(before) != 1 || before[0].People != 30 || before[0].Peak != 30 || before[0].Minutes[0].Danmaku != 30 {
			t.Fatalf("%+v, %v", before, err)
		}
		w.join("demo", "unstored") // and then it dies: nothing is handed over

		again := newWorld(t, bus, func(c *Config) { c.Node = "n2" })
		a := again.join("demo", "host", as(protocol.RoleHost))
		r, _ := again.hub.Room("demo")
		if s := r.Census().Shows(); len(s) != 1 || s[0].People < 30 || s[0].Peak < 30 {
			t.Fatalf("after the kill: %+v", s)
		}
		time.Sleep(7 * time.Second)
		if s := r.Census().Shows(); s[0].Begin != before[0].Begin || s[0].People < 31 {
			t.Fatalf("a while after the kill: %+v", s)
		}
		if e := a.moderate(protocol.ActionClose, nil); e.Code != int(protocol.OK) {
			t.Fatal(e)
		}
		time.Sleep(time.Minute)
		if s := r.Census().Shows(); s[0].End == 0 {
			t.Fatalf("closed: %+v", s)
		}
		if e := a.moderate(protocol.ActionOpen, nil); e.Code != int(protocol.OK) {
			t.Fatal(e)
		}
		time.Sleep(7 * time.Second)
		if s := r.Census().Shows(); len(s) != 2 || s[0].End != 0 || s[0].Begin <= s[1].End {
			t.Fatalf("opened: %+v", s)
		}
	})
}

// A room where nothing happens is stored once in minutes, one where something does more often; and nothing is stored without a rest.
func TestShowsAreStoredSparingly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		w := newWorld(t, bus, nil)
		for room := range 50 {
			w.join(fmt.Sprint("r", room), fmt.Sprint("u", room))
		}
		busy := w.join("busy", "a")
		stores := func() (quiet, busy uint64) {
			bus.mu.Lock()
			defer bus.mu.Unlock()
			for room := range 50 {
				quiet += bus.shows[fmt.Sprint("r", room)].revision
			}
			return quiet, bus.shows["busy"].revision
		}
		time.Sleep(time.Minute)
		quiet, spoken := stores()
		for range 20 {
			busy.say(fmt.Sprint(time.Now()))
			time.Sleep(29 * time.Second)
		}
		quiet2, spoken2 := stores()
		if n := quiet2 - quiet; n < 50 || n > 100 {
			t.Errorf("%d times in ten minutes for 50 rooms where nothing happens", n)
		}
		if n := spoken2 - spoken; n < 10 || n > 30 {
			t.Errorf("%d times where somebody speaks twice a minute", n)
		}
	})
}

// Whoever is on several nodes counts once, also in the show's peak.
func TestPeopleOfAllNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		var nodes [2]*world
		for i := range nodes {
			nodes[i] = newWorld(t, bus, func(c *Config) {
				c.Node = fmt.Sprint("n", i)
				c.Elsewhere = func(room string) Others {
					other := nodes[1-i]
					if other == nil {
						return Others{}
					}
					r, ok := other.hub.Room(room)
					if !ok {
						return Others{}
					}
					return Others{Sessions: r.audience.Here(), Version: r.people.Version(), People: func() []people.Crowd { return []people.Crowd{r.people.Crowd()} }}
				}
			})
		}
		a := nodes[0].join("demo", "a")
		nodes[1].join("demo", "a")
		nodes[1].join("demo", "b")
		time.Sleep(45 * time.Second)
		if got := a.online(); got != "3 2" {
			t.Errorf("told %s", got)
		}
		for _, w := range nodes {
			r, _ := w.hub.Room("demo")
			if s := r.Census().Shows(); len(s) != 1 || s[0].People != 2 || s[0].Peak != 2 {
				t.Errorf("node %s: %+v", w.hub.cfg.Node, s)
			}
		}
	})
}

// Staff stands first, then the newest; a place goes on behind itself.
func TestPersonsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64 // of the wall clock, ns
		w := newWorld(t, newMemoryBus(), func(c *Config) { c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) } })
		for _, j := range []string{"a", "mod", "b", "host", "c", "a"} {
			w.join("demo", j, as(map[string]protocol.Role{"mod": protocol.RoleModerator, "host": protocol.RoleHost}[j]))
			time.Sleep(time.Second)
		}
		r, _ := w.hub.Room("demo")
		names := func(all []Visitor) (out []string) {
			for _, p := range all {
				out = append(out, fmt.Sprint(p.ID, p.Sessions))
			}
			return out
		}
		whole := r.Visitors(nil, 100)
		if got := strings.Join(names(whole), " "); got != "host1 mod1 a2 c1 b1" {
			t.Fatal(got)
		}
		time.Sleep(2 * offsetFor)
		ahead.Store(int64(time.Millisecond)) // as far as a clock is corrected
		w.hub.stamps.at(w.hub.gate.Now())
		if again := r.Visitors(nil, 100); !slices.EqualFunc(again, whole, func(a, b Visitor) bool { return a.Standing() == b.Standing() }) {
			t.Errorf("people moved: %v, were %v", again, whole)
		}
		var paged []Visitor
		for at := (*Standing)(nil); ; {
			page := r.Visitors(at, 2)
			if len(page) == 0 {
				break
			}
			paged = append(paged, page...)
			s, ok := ParseStanding(page[len(page)-1].Standing().String())
			if !ok {
				t.Fatal("a place can't be read")
			}
			at = &s
		}
		if !slices.Equal(names(paged), names(whole)) {
			t.Errorf("paged %v", names(paged))
		}
		if got := names(r.VisitorsOf([]string{"a", "nobody"})); !slices.Equal(got, []string{"a2"}) {
			t.Error(got)
		}
	})
}

// While the store is away nobody waits, and what was counted meanwhile is stored once it is back.
func TestShowsWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		w := newWorld(t, bus, nil)
		w.join("demo", "a")
		bus.set(func(b *memoryBus) { b.down = true })
		w.join("demo", "b")
		time.Sleep(time.Minute)
		bus.set(func(b *memoryBus) { b.down = false })
		time.Sleep(7 * time.Second)
		if s, err := w.hub.Shows(context.Background(), "demo"); err != nil || len(s) != 1 || s[0].People != 2 {
			t.Fatalf("%+v, %v", s, err)
		}
	})
}
