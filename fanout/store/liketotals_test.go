package store

import (
	"testing"

	"liveroom/fanout/link"
)

// The counters are written behind: what a crash takes from them comes back from the log before anybody is shown less.
func TestLikesAreRestoredFromTheLog(t *testing.T) {
	dir := t.TempDir()
	l := alone(t, dir)
	s, rooms, stop := open(t, l, dir, "n1")
	if err := s.Likes.AddLikes("demo", 41); err != nil {
		t.Fatal(err)
	}
	if total := receive(t, rooms.likes); total != 41 {
		t.Fatalf("likes %d", total)
	}
	lose(t, l, link.LikesStream, likesSubject("demo"))
	stop()
	l.Shut()

	s, rooms, _ = open(t, alone(t, dir), dir, "n1")
	if total, err := s.Likes.Likes(testContext(t), "demo"); err != nil || total != 41 {
		t.Errorf("likes %d after the crash, 41 were shown: %v", total, err)
	}
	if err := s.Likes.AddLikes("demo", 1); err != nil {
		t.Fatal(err)
	}
	if total := receive(t, rooms.likes); total != 42 {
		t.Errorf("likes %d", total)
	}
}

func TestLikesOfNothing(t *testing.T) {
	dir := t.TempDir()
	s, _, _ := open(t, alone(t, dir), dir, "n1")
	for _, delta := range []int64{0, -1} {
		if err := s.Likes.AddLikes("demo", delta); err == nil {
			t.Errorf("delta %d passes", delta)
		}
	}
	if total, err := s.Likes.Likes(testContext(t), "nobody"); err != nil || total != 0 {
		t.Errorf("likes %d, %v", total, err)
	}
}

func TestParseTotal(t *testing.T) {
	for body, want := range map[string]int64{`{"val":"123"}`: 123, `{"val":"0"}`: 0} {
		if got, err := parseTotal([]byte(body)); err != nil || got != want {
			t.Errorf("%s: %d, %v", body, got, err)
		}
	}
	for _, body := range []string{``, `{}`, `{"val":""}`, `{"val":"x"}`, `{"val":"99999999999999999999"}`} {
		if got, err := parseTotal([]byte(body)); err == nil {
			t.Errorf("%s: %d", body, got)
		}
	}
}
