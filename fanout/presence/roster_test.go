package presence

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestRosterModel lets nodes announce, die, come back under their id, and speak from the past, over a network that
// loses parts. Of each living node the counts are those of its last whole announcement with the changes heard since, and
// those it has now, unless something was lost; then it is asked, and is right again after its answer.
func TestRosterModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const timeout = 6 * time.Second
		now := time.Unix(1000, 0)
		r := newRoster("self", timeout)
		type node struct {
			incarnation, beat uint64
			heardOf           uint64               // incarnation
			rooms             map[string]announced // what it has
			said              map[string]announced // what it said last; nil: nothing
			heard             time.Time
			known             bool           // to the roster
			sure              bool           // the roster has heard everything
			shown             map[string]int // in the roster
		}
		nodes := map[string]*node{}
		for _, name := range []string{"n1", "n2", "n3"} {
			nodes[name] = &node{incarnation: 1}
		}
		names := rapid.SampledFrom([]string{"n1", "n2", "n3"})
		rooms := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}),
			rapid.Custom(func(t *rapid.T) announced { return announced{rapid.Int64Range(1, 50).Draw(t, "online")} }), 0, 4)
		online := func(rooms map[string]announced) map[string]int {
			out := map[string]int{}
			for room, v := range rooms {
				out[room] = v.crowd().Sessions
			}
			return out
		}
		expire := func() {
			for _, n := range nodes {
				if n.known && now.Sub(n.heard) >= timeout {
					n.known, n.sure, n.shown = false, false, nil
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"beat": func(t *rapid.T) {
				name := names.Draw(t, "node")
				n := nodes[name]
				n.rooms = rooms.Draw(t, "rooms")
				n.beat++
				whole := n.said == nil || rapid.Bool().Draw(t, "whole")
				parts := []map[string]announced{{}, {}}
				for i, part := range cutParts(n.rooms, n.said, whole) { // of few rooms: one; cut in two here
					for room, v := range part {
						parts[(i+len(room)+int(room[0]))%2][room] = v
					}
				}
				n.said = n.rooms
				lost := rapid.SampledFrom([]int{-1, -1, -1, 0, 1, 2}).Draw(t, "lost part")
				expire()
				for i, part := range parts {
					if i == lost || lost == 2 {
						n.sure = false
						continue
					}
					if !n.known || n.heardOf != n.incarnation {
						n.known, n.sure, n.shown = true, false, map[string]int{}
					}
					n.heard, n.heardOf = now, n.incarnation
					r.hear(announcement{
						identity: identity{Node: name, Incarnation: n.incarnation}, Beat: n.beat, Whole: whole, Part: i, Parts: 2, Rooms: part,
					}, now)
				}
				if lost == -1 && whole {
					n.sure = true
				}
				if n.sure {
					n.shown = online(n.rooms)
				}
			},
			"restart": func(t *rapid.T) {
				n := nodes[names.Draw(t, "node")]
				*n = node{incarnation: n.incarnation + 1, heardOf: n.heardOf, known: n.known, sure: n.sure, heard: n.heard, shown: n.shown}
			},
			"from the past": func(t *rapid.T) {
				name := names.Draw(t, "node")
				n := nodes[name]
				expire()
				if n.known && n.heardOf == n.incarnation {
					r.hear(announcement{identity: identity{Node: name, Incarnation: n.incarnation - 1}, Beat: 99, Whole: true, Parts: 1, Rooms: rooms.Draw(t, "rooms")}, now)
					r.hear(announcement{identity: identity{Node: name, Incarnation: n.incarnation - 1}, Goodbye: true}, now)
				}
			},
			"of itself": func(t *rapid.T) {
				r.hear(announcement{identity: identity{Node: "self", Incarnation: 9}, Beat: 1, Whole: true, Parts: 1, Rooms: rooms.Draw(t, "rooms")}, now)
			},
			"goodbye": func(t *rapid.T) {
				name := names.Draw(t, "node")
				n := nodes[name]
				r.hear(announcement{identity: identity{Node: name, Incarnation: n.incarnation}, Goodbye: true}, now)
				expire()
				if n.heardOf == n.incarnation {
					*n = node{incarnation: n.incarnation + 1}
				} else { // nobody has heard of it
					*n = node{incarnation: n.incarnation + 1, heardOf: n.heardOf, known: n.known, sure: n.sure, heard: n.heard, shown: n.shown}
				}
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 4000).Draw(t, "ms")) * time.Millisecond)
			},
			"": func(t *rapid.T) {
				expire()
				got := map[string]int{}
				for room, c := range r.rooms(now) {
					got[room] = c.Sessions
				}
				alive, sure, want := 0, true, map[string]int{}
				for _, n := range nodes {
					if n.known {
						alive++
					}
					sure = sure && (!n.known || n.sure)
					for room, online := range n.shown {
						want[room] += online
					}
				}
				if sure && !maps.Equal(got, want) {
					t.Fatalf("rooms %v, want %v", got, want)
				}
				if n := len(r.names(now)); n != alive {
					t.Fatalf("%d nodes, want %d", n, alive)
				}
				if n := int(r.count.Load()); n < 1+alive {
					t.Fatalf("counts %d nodes of %d", n, 1+alive)
				}
				if err := r.check(); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}

// Who missed a part asks, not more often than a third of the timeout.
func TestRosterAsks(t *testing.T) {
	r, now := newRoster("self", 6*time.Second), time.Unix(1000, 0)
	say := func(beat uint64, whole bool, part, parts int, room string, online int64) bool {
		return r.hear(announcement{
			identity: identity{Node: "n", Incarnation: 1}, Beat: beat, Whole: whole, Part: part, Parts: parts, Rooms: map[string]announced{room: {online}},
		}, now)
	}
	for i, step := range []struct {
		ask  bool
		want string
		do   func() bool
	}{
		{true, "map[]", func() bool { return say(7, false, 0, 1, "a", 1) }},  // changes of what is not known
		{false, "map[]", func() bool { return say(8, false, 0, 1, "a", 2) }}, // asked just now
		{false, "map[]", func() bool { return say(9, true, 0, 2, "a", 3) }},
		{false, "map[a:{3 3} b:{1 1}]", func() bool { return say(9, true, 1, 2, "b", 1) }},
		{false, "map[a:{4 4} b:{1 1}]", func() bool { return say(10, false, 0, 1, "a", 4) }},
		{false, "map[a:{4 4}]", func() bool { return say(11, false, 0, 1, "b", 0) }},
		{false, "map[a:{4 4}]", func() bool { return say(11, false, 0, 1, "a", 9) }}, // again: taken for a loss, asked just now
		{true, "map[a:{4 4}]", func() bool { now = now.Add(2 * time.Second); return say(12, false, 0, 1, "a", 5) }},
		{false, "map[a:{6 6}]", func() bool { return say(13, true, 0, 1, "a", 6) }},
	} {
		if ask := step.do(); ask != step.ask || fmt.Sprint(r.rooms(now)) != step.want {
			t.Errorf("step %d: asks %v, rooms %v; want %v, %s", i, ask, r.rooms(now), step.ask, step.want)
		}
	}
}
