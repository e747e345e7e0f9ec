package room

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// An audience against a set, with flushes whose snapshot must not change under joins and leaves.
func TestAudienceModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := audience{most: 8}
		var frozen, copied [][]*Member
		in := map[*Member]bool{}
		leave := func(t *rapid.T, n int) {
			all := slices.SortedFunc(maps.Keys(in), inOrder)
			for range min(n, len(all)) {
				i := rapid.IntRange(0, len(all)-1).Draw(t, "who")
				if !a.remove(all[i]) {
					t.Fatalf("member %d is not found", all[i].number)
				}
				if a.remove(all[i]) {
					t.Fatalf("member %d is found twice", all[i].number)
				}
				delete(in, all[i])
				all = slices.Delete(all, i, i+1)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if err := a.check(); err != nil {
					t.Fatal(err)
				}
				if a.size != len(in) {
					t.Fatalf("size is %d, joined are %d", a.size, len(in))
				}
				for i := range copied {
					if !slices.Equal(frozen[i], copied[i]) {
						t.Fatalf("shard %d of the snapshot has changed", i)
					}
				}
			},
			"join one": func(t *rapid.T) {
				m := &Member{descriptor: rapid.IntRange(0, 5).Draw(t, "descriptor"), deflates: rapid.Bool().Draw(t, "deflates")}
				a.add(m)
				in[m] = true
			},
			"join many": func(t *rapid.T) {
				from := rapid.IntRange(0, 50).Draw(t, "from")
				for i := range 20 {
					m := &Member{descriptor: from + i*7%20}
					a.add(m)
					in[m] = true
				}
			},
			"leave one":  func(t *rapid.T) { leave(t, 1) },
			"leave many": func(t *rapid.T) { leave(t, 15) },
			"flush": func(t *rapid.T) {
				if copied != nil {
					a.thaw()
					frozen, copied = nil, nil
					return
				}
				frozen = a.freeze(nil)
				for _, members := range frozen {
					copied = append(copied, slices.Clone(members))
				}
			},
		})
	})
}

// CASES 11: over any joins and leaves, online equals the members, on the room, at the gate and in the list.
func TestJoinLeaveModel(t *testing.T) {
	w := newWorld(t, newMemoryBus(), func(c *Config) {
		c.Gate = gateOf(t, unlimited)
		c.SweepEvery, c.RoomIdle = 1e6, 1e6 // a millisecond: rooms and users come and go while others join
	})
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		var in []*viewer
		count := map[string]int{}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if err := w.hub.check(); err != nil {
					t.Fatal(err)
				}
				for id, n := range count {
					r, ok := w.hub.Room(id)
					if n > 0 && !ok || ok && r.Online() != n {
						t.Fatalf("room %s: joined are %d, online says otherwise", id, n)
					}
				}
			},
			"join": func(t *rapid.T) {
				room := fmt.Sprint("r", run, "-", rapid.IntRange(0, 3).Draw(t, "room"))
				v := w.join(room, fmt.Sprint("u", rapid.IntRange(0, 3).Draw(t, "user")))
				in = append(in, v)
				count[room]++
			},
			"leave": func(t *rapid.T) {
				if len(in) == 0 {
					return
				}
				i := rapid.IntRange(0, len(in)-1).Draw(t, "who")
				in[i].Leave()
				in[i].Leave() // the second must do nothing
				count[in[i].room.id]--
				in = slices.Delete(in, i, i+1)
			},
		})
		for _, v := range in {
			v.Leave()
		}
	})
	eventually(t, func() bool {
		rooms, users := w.hub.sizes()
		return rooms+users == 0
	})
	w.bus.set(func(b *memoryBus) {
		if n := len(b.feeds); n != 0 {
			t.Fatalf("%d subscriptions are left of rooms that are gone", n)
		}
	})
}
