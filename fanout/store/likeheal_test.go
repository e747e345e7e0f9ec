package store

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"liveroom/fanout/link"
)

// Many nodes that see the same loss repair it once, also when one of them died over it, and while likes come in.
func TestLossIsRepairedOnce(t *testing.T) {
	t.Parallel()
	l := alone(t, t.TempDir())
	var nodes []*LikeTotals
	for i := range 3 {
		s, _, _ := open(t, l, t.TempDir(), fmt.Sprint("n", i+1))
		nodes = append(nodes, s.Likes)
	}
	ctx := testContext(t)
	for round := range int64(5) {
		room := fmt.Sprint("room", round)
		if err := nodes[0].AddLikes(room, 1000); err != nil {
			t.Fatal(err)
		}
		if err := nodes[0].Flush(ctx); err != nil {
			t.Fatal(err)
		}
		lose(t, l, link.LikesStream, likesSubject(room))
		key := "raise." + room
		if round%2 == 1 { // a node that died before, or right after, it made what it had put on record
			r := raise{ID: fmt.Sprint("dead", round), Delta: 1000}
			if _, err := nodes[0].recordRaise(ctx, key, r, 0); err != nil {
				t.Fatal(err)
			}
			if round == 3 {
				if err := nodes[0].makeRaise(ctx, room, r); err != nil {
					t.Fatal(err)
				}
			}
		}
		var wg sync.WaitGroup
		for i, k := range nodes {
			wg.Go(func() {
				if err := k.healRoom(ctx, room, 1000-int64(i)*10); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if total, err := nodes[0].Likes(ctx, room); err != nil || total != 1000 {
			t.Errorf("round %d: likes %d, %v", round, total, err)
		}
		if err := nodes[1].heal(context.Background(), map[string]int64{room: 1000}); err != nil {
			t.Error(err)
		}
		if total, err := nodes[2].Likes(ctx, room); err != nil || total != 1000 {
			t.Errorf("round %d, again: likes %d, %v", round, total, err)
		}
	}
}

func TestTotalsAreBounded(t *testing.T) {
	k := leftTotals{byRoom: map[string]int64{}}
	for i := range totalsKept + 10 {
		k.keep(fmt.Sprint(i), int64(i+1))
		k.keep(fmt.Sprint(i), 1) // never falls
		k.keep("nothing", 0)
	}
	if len(k.byRoom) != totalsKept || len(k.rooms) != totalsKept {
		t.Errorf("%d totals, %d rooms", len(k.byRoom), len(k.rooms))
	}
	if a, b := k.byRoom["9"], k.byRoom["10"]; a != 0 || b != 11 {
		t.Errorf("the oldest %d, the next %d", a, b)
	}
}

// What this node goes by of a room is forgotten with the room, but for its likes; an older copy of its settings is not taken.
func TestWhatIsKnownOfARoom(t *testing.T) {
	h := newHere()
	set := func(seq, origin uint64) link.Record { return link.Record{Seq: seq, Origin: origin, Data: []byte("x")} }
	h.enter("demo")
	if total := h.open("demo", 5, set(7, 0)); total != 5 {
		t.Errorf("opens with %d likes", total)
	}
	h.shown("demo", 9)
	if !h.take("demo", set(8, 0)) || h.take("demo", set(9, 7)) || !h.isOutdated("demo") || h.current("demo").Seq != 8 {
		t.Errorf("goes by %+v, outdated %v", h.current("demo"), h.isOutdated("demo"))
	}
	if u := h.untold(false); len(u) != 1 || u["demo"].Seq != 8 || len(h.untold(false)) != 0 || len(h.untold(true)) != 1 {
		t.Errorf("untold %v", u)
	}
	if h.again("demo"); !h.isOutdated("demo") {
		t.Error("what was not told is forgotten")
	}
	h.leave("demo")
	if len(h.rooms) != 0 || h.totals()["demo"] != 9 || h.open("demo", 3, link.Record{}) != 9 {
		t.Errorf("%d rooms, totals %v", len(h.rooms), h.totals())
	}
	if h.settings.next(1) != 9 {
		t.Errorf("a new stream would begin at %d", h.settings.next(1))
	}
}
