package store

import (
	"errors"
	"testing"
)

// Of those who write a room's record at once one is told that it was not faster, and the record outlives the node.
func TestShows(t *testing.T) {
	dir, ctx := t.TempDir(), testContext(t)
	l := alone(t, dir)
	s, _, stop := open(t, l, dir, "n1")
	if got, revision, err := s.Shows.Show(ctx, "демо room"); got != nil || revision != 0 || err != nil {
		t.Fatalf("%q at %d, %v", got, revision, err)
	}
	first, err := s.Shows.PutShow(ctx, "демо room", []byte("one"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Shows.PutShow(ctx, "демо room", []byte("other"), 0); !errors.Is(err, ErrConflict) {
		t.Errorf("a second first: %v", err)
	}
	if _, err := s.Shows.PutShow(ctx, "демо room", []byte("two"), first); err != nil {
		t.Error(err)
	}
	stop()
	l.Shut()
	s, _, _ = open(t, alone(t, dir), dir, "n1")
	if got, revision, err := s.Shows.Show(ctx, "демо room"); string(got) != "two" || revision <= first || err != nil {
		t.Errorf("%q at %d, %v", got, revision, err)
	}
}
