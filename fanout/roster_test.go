package fanout

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestRosterModel lets nodes announce, die, come back under their id, and speak from the past, over a network that
// loses parts; the counts are always those of the last whole snapshot of each living node.
func TestRosterModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const timeout = 6 * time.Second
		now := time.Unix(1000, 0)
		r := newRoster("self", timeout)
		type known struct {
			incarnation, snapshot uint64
			heard                 time.Time
			rooms                 map[string]announced
		}
		model := map[string]*known{}
		expire := func() {
			for name, k := range model {
				if now.Sub(k.heard) >= timeout {
					delete(model, name)
				}
			}
		}
		names := rapid.SampledFrom([]string{"n1", "n2", "n3", "self"})
		rooms := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}),
			rapid.Custom(func(t *rapid.T) announced { return announced{rapid.Int64Range(1, 50).Draw(t, "online")} }), 0, 3)
		t.Repeat(map[string]func(*rapid.T){
			"announce": func(t *rapid.T) {
				a := announcement{
					Node: names.Draw(t, "node"), Incarnation: rapid.Uint64Range(1, 4).Draw(t, "incarnation"),
					Snapshot: rapid.Uint64Range(1, 20).Draw(t, "snapshot"), Parts: 1, Rooms: rooms.Draw(t, "rooms"),
				}
				r.hear(a, now)
				expire()
				k := model[a.Node]
				switch {
				case a.Node == "self" || k != nil && a.Incarnation < k.incarnation:
				case k == nil || a.Incarnation > k.incarnation:
					model[a.Node] = &known{a.Incarnation, a.Snapshot, now, a.Rooms}
				default:
					k.heard = now
					if a.Snapshot > k.snapshot {
						k.snapshot, k.rooms = a.Snapshot, a.Rooms
					}
				}
			},
			"first of two parts": func(t *rapid.T) {
				node := names.Draw(t, "node")
				k := model[node]
				if k == nil || now.Sub(k.heard) >= timeout {
					return
				}
				k.snapshot, k.heard = k.snapshot+1, now
				r.hear(announcement{Node: node, Incarnation: k.incarnation, Snapshot: k.snapshot, Parts: 2, Rooms: rooms.Draw(t, "rooms")}, now)
			},
			"goodbye": func(t *rapid.T) {
				a := announcement{Node: names.Draw(t, "node"), Incarnation: rapid.Uint64Range(1, 4).Draw(t, "incarnation"), Goodbye: true}
				r.hear(a, now)
				expire()
				if k := model[a.Node]; k != nil && a.Incarnation >= k.incarnation {
					delete(model, a.Node)
				}
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 4000).Draw(t, "ms")) * time.Millisecond)
			},
			"": func(t *rapid.T) {
				expire()
				want := map[string]int{}
				for _, k := range model {
					for room, v := range k.rooms {
						want[room] += v.online()
					}
				}
				if got := r.rooms(now); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("rooms %v, want %v", got, want)
				}
				if n := len(r.names(now)); n != len(model) {
					t.Fatalf("%d nodes, want %d", n, len(model))
				}
				if err := r.check(); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}
