package audience

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The shards against a set, with flushes whose snapshot must not change under joins and leaves.
func TestShardsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := shards[*viewer]{most: 8}
		var frozen, copied [][]*viewer
		in := map[*viewer]bool{}
		leave := func(t *rapid.T, n int) {
			all := slices.SortedFunc(maps.Keys(in), inOrder[*viewer])
			for range min(n, len(all)) {
				i := rapid.IntRange(0, len(all)-1).Draw(t, "who")
				if !a.remove(all[i]) {
					t.Fatalf("viewer %d is not found", all[i].spot.number)
				}
				if a.remove(all[i]) {
					t.Fatalf("viewer %d is found twice", all[i].spot.number)
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
				m := &viewer{spot: Spot{Order: rapid.IntRange(0, 5).Draw(t, "order"), Deflates: rapid.Bool().Draw(t, "deflates")}}
				a.add(m)
				in[m] = true
			},
			"join many": func(t *rapid.T) {
				from := rapid.IntRange(0, 50).Draw(t, "from")
				for i := range 20 {
					m := &viewer{spot: Spot{Order: from + i*7%20}}
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

// check returns what is wrong with the shards.
func (a *shards[V]) check() error {
	n, deflating := 0, 0
	var last, none V
	for i, s := range a.all {
		if len(s.members) == 0 || len(s.members) >= a.most {
			return fmt.Errorf("shard %d has %d members", i, len(s.members))
		}
		for _, m := range s.members {
			if last != none && inOrder(last, m) >= 0 {
				return fmt.Errorf("shard %d: %d/%d stands after %d/%d", i, m.Spot().Order, m.Spot().number, last.Spot().Order, last.Spot().number)
			}
			last = m
			n++
			if m.Spot().Deflates {
				deflating++
			}
		}
	}
	if deflating != a.deflating {
		return fmt.Errorf("%d deflate, counted %d", deflating, a.deflating)
	}
	if n != a.size {
		return fmt.Errorf("size is %d, there are %d", a.size, n)
	}
	return nil
}
