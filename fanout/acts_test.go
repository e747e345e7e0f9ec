package fanout

import (
	"errors"
	"fmt"
	"testing"

	"liveroom/fanout/store"
)

// An act reaches the nodes that have the room in its order, is decided by compare-and-set, outlives its node, and one alone takes the others away.
func TestActsReachEveryNode(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	ctx := testContext(t)
	a := openUnclosed(t, Config{NodeID: "a", URLs: []string{s.ClientURL()}, Shared: true})
	b := open(t, Config{NodeID: "b", URLs: []string{s.ClientURL()}, Shared: true})
	heard, _ := subscribe(t, b, "de.mo")
	other, _ := subscribe(t, b, "demo")
	put := func(f *Fabric, what string, last uint64, alone bool) uint64 {
		t.Helper()
		seq, err := f.Store.Settings.PutAct(ctx, "de.mo", []byte(what), last, alone)
		if err != nil || seq <= last {
			t.Fatalf("%s after %d: %d, %v", what, last, seq, err)
		}
		if got := receive(t, heard.acts); got.Seq != seq || string(got.Value) != what {
			t.Errorf("told %d %s, want %d %s", got.Seq, got.Value, seq, what)
		}
		return seq
	}
	one := put(a, "one", 0, false)
	two := put(b, "two", one, false)
	if _, err := a.Store.Settings.PutAct(ctx, "de.mo", []byte("too late"), one, false); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the slower one is told %v", err)
	}
	closeNow(t, a)
	c := open(t, Config{NodeID: "c", URLs: []string{s.ClientURL()}, Shared: true})
	_, here := subscribe(t, c, "de.mo")
	if got := fmt.Sprint(here.Opening().Acts); got != fmt.Sprintf("[{%d [111 110 101]} {%d [116 119 111]}]", one, two) || here.Opening().Revision != 0 {
		t.Errorf("opening has %s", got)
	}
	three := put(c, "{}", two, true)
	left, err := b.Store.Settings.ActsAfter(ctx, "de.mo", 0)
	if err != nil || len(left) != 1 || left[0].Seq != three {
		t.Errorf("left %v, %v", left, err)
	}
	if len(other.acts) > 0 {
		t.Error("another room is told")
	}
}
