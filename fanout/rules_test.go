package fanout

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"liveroom/fanout/store"
)

// TestRulesAreVersioned: one winner among those who publish on the same version, history newest first, all over a
// restart of the node.
func TestRulesAreVersioned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx := testContext(t)
	f := openUnclosed(t, Config{NodeID: "n1", DataDir: dir})
	if got, err := f.Store.Rules.History(ctx, 0, 1); len(got) != 0 || err != nil {
		t.Fatalf("a new store has rules: %v, %v", got, err)
	}
	results := make(chan error, 8)
	for i := range 8 {
		go func() {
			_, err := f.Store.Rules.Publish(ctx, fmt.Appendf(nil, "set %d", i), 0)
			results <- err
		}()
	}
	won := 0
	for range 8 {
		switch err := receive(t, results); {
		case err == nil:
			won++
		case !errors.Is(err, store.ErrConflict):
			t.Error(err)
		}
	}
	if won != 1 {
		t.Fatalf("%d publishers won", won)
	}
	for v := uint64(1); v < 5; v++ {
		if got, err := f.Store.Rules.Publish(ctx, fmt.Appendf(nil, "after %d", v), v); err != nil || got != v+1 {
			t.Fatalf("version %d, %v", got, err)
		}
	}
	closeNow(t, f)

	f = open(t, Config{NodeID: "n1", DataDir: dir})
	history, err := f.Store.Rules.History(ctx, 0, 3)
	if err != nil || len(history) != 3 || history[0].Version != 5 || history[2].Version != 3 {
		t.Fatalf("history %v, %v", history, err)
	}
	older, err := f.Store.Rules.History(ctx, 3, 10)
	if err != nil || len(older) != 2 || older[0].Version != 2 {
		t.Fatalf("older %v, %v", older, err)
	}
	if one := history[1]; string(one.Payload) != "after 3" || one.Time.IsZero() || one.Node != "n1" {
		t.Errorf("version 4: %+v", one)
	}
}

// TestRulesWithoutTheNewest: a damaged disk took the newest set; those before it are there to go back to, and the next one
// still follows it.
func TestRulesWithoutTheNewest(t *testing.T) {
	t.Parallel()
	ctx, dir := testContext(t), t.TempDir()
	f := openUnclosed(t, Config{NodeID: "n1", DataDir: dir})
	for v := range uint64(3) {
		if _, err := f.Store.Rules.Publish(ctx, fmt.Appendf(nil, "set %d", v+1), v); err != nil {
			t.Fatal(err)
		}
	}
	closeNow(t, f)
	damaged := 0
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".blk" {
			return err
		}
		raw, err := os.ReadFile(path)
		if at := bytes.LastIndex(raw, []byte("set 3")); err == nil && at >= 0 {
			damaged++
			raw[at] = 'x'
			err = os.WriteFile(path, raw, 0o600)
		}
		return err
	})
	if err != nil || damaged != 1 {
		t.Fatalf("%d files damaged, %v", damaged, err)
	}

	f = open(t, Config{NodeID: "n1", DataDir: dir})
	history, err := f.Store.Rules.History(ctx, 0, 2)
	if err != nil || len(history) == 0 || history[0].Version != 2 {
		t.Errorf("history %v, %v", history, err)
	}
	if got, err := f.Store.Rules.Publish(ctx, []byte("set 4"), 3); err != nil || got != 4 {
		t.Errorf("version %d, %v", got, err)
	}
}

// TestRulesReachEveryNode: two nodes hear of a set at once, and one that was cut off when it was published hears of it
// from its own look at the store.
func TestRulesReachEveryNode(t *testing.T) {
	t.Parallel()
	url := natsServer(t).ClientURL()
	ctx := testContext(t)
	heard := make([]chan store.Edition, 2)
	var nodes []*Fabric
	for i := range heard {
		// The period is far longer than the test: what arrives has come as news.
		f := open(t, Config{NodeID: fmt.Sprint("n", i), URLs: []string{url}, Shared: true, FollowEvery: time.Hour})
		nodes = append(nodes, f)
		heard[i] = make(chan store.Edition, 10)
		stop, err := f.Store.Rules.Follow(func(r store.Edition) { heard[i] <- r })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
	}
	if _, err := nodes[0].Store.Rules.Publish(ctx, []byte("first"), 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range heard {
		if r := receive(t, c); r.Version != 1 || string(r.Payload) != "first" {
			t.Fatalf("heard %v", r)
		}
	}

	late := open(t, Config{NodeID: "late", URLs: []string{url}, Shared: true, FollowEvery: 10 * time.Millisecond})
	c := make(chan store.Edition, 10)
	stop, err := late.Store.Rules.Follow(func(r store.Edition) { c <- r })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if r := receive(t, c); r.Version != 1 {
		t.Fatalf("late node heard %v", r)
	}
}
