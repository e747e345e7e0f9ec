package fanout

import (
	"errors"
	"slices"
	"testing"

	"liveroom/fanout/store"
)

// Of two who change a reader's place at the same time one is told; it is there after a restart, and none of another revision is taken away.
func TestAReadersPlaceIsKept(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), testContext(t)
	f := openUnclosed(t, Config{NodeID: "n1", DataDir: dir})
	put := func(name, value string, revision uint64) (uint64, error) {
		return f.Store.Readers.PutReader(ctx, store.ReaderRecord{Name: name, Value: []byte(value), Revision: revision})
	}
	if r, err := f.Store.Readers.Reader(ctx, "books"); err != nil || r.Revision != 0 {
		t.Fatalf("before: %+v, %v", r, err)
	}
	first, err := put("books", "1", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := put("books", "x", 0); !errors.Is(err, store.ErrConflict) {
		t.Errorf("made again: %v", err)
	}
	second, err := put("books", "2", first)
	if err != nil || second <= first {
		t.Fatal(first, second, err)
	}
	if _, err := put("books", "x", first); !errors.Is(err, store.ErrConflict) {
		t.Errorf("by one who was slower: %v", err)
	}
	if err := f.Store.Readers.DropReader(ctx, store.ReaderRecord{Name: "books", Revision: first}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("an older one is taken away: %v", err)
	}
	if _, err := put("other", "3", 0); err != nil {
		t.Fatal(err)
	}
	closeNow(t, f)
	f = open(t, Config{NodeID: "n1", DataDir: dir})
	all, err := f.Store.Readers.AllReaders(ctx)
	var names []string
	for _, r := range all {
		names = append(names, r.Name+"="+string(r.Value))
	}
	if slices.Sort(names); err != nil || !slices.Equal(names, []string{"books=2", "other=3"}) {
		t.Errorf("after a restart: %v, %v", names, err)
	}
	if err := f.Store.Readers.DropReader(ctx, store.ReaderRecord{Name: "books", Revision: second}); err != nil {
		t.Error(err)
	}
	if _, err := put("books", "4", 0); err != nil {
		t.Errorf("made anew: %v", err)
	}
}
