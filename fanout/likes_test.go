package fanout

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// The counters are written behind: what a crash takes from them comes back from the log before anybody is shown less.
func TestLikesAreRestoredFromTheLog(t *testing.T) {
	dir := t.TempDir()
	f := openUnclosed(t, Config{NodeID: "n1", DataDir: dir})
	l, s := subscribe(t, f, "demo")
	if err := f.AddLikes("demo", 41); err != nil {
		t.Fatal(err)
	}
	if total := receive(t, l.likes); total != 41 {
		t.Fatalf("likes %d", total)
	}
	s.Close()
	stream, err := f.js.Stream(testContext(t), likesStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(testContext(t), jetstream.WithPurgeSubject(likesSubject("demo"))); err != nil {
		t.Fatal(err)
	}
	closeNow(t, f)

	f = open(t, Config{NodeID: "n1", DataDir: dir})
	l, s = subscribe(t, f, "demo")
	if s.Opening().Likes != 41 {
		t.Errorf("likes %d after the crash, 41 were shown", s.Opening().Likes)
	}
	if err := f.AddLikes("demo", 1); err != nil {
		t.Fatal(err)
	}
	if total := receive(t, l.likes); total != 42 {
		t.Errorf("likes %d", total)
	}
}

func TestLikesAreStoredBeforeClosing(t *testing.T) {
	dir := t.TempDir()
	f := openUnclosed(t, Config{NodeID: "n1", DataDir: dir, LikesGather: never})
	if err := f.AddLikes("demo", 5); err != nil {
		t.Fatal(err)
	}
	closeNow(t, f)
	f = open(t, Config{NodeID: "n1", DataDir: dir})
	if total, err := f.Likes(testContext(t), "demo"); err != nil || total != 5 {
		t.Errorf("likes %d, %v", total, err)
	}
}

func TestLikesOfNothing(t *testing.T) {
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir()})
	for _, delta := range []int64{0, -1} {
		if err := f.AddLikes("demo", delta); err == nil {
			t.Errorf("delta %d passes", delta)
		}
	}
	if total, err := f.Likes(testContext(t), "nobody"); err != nil || total != 0 {
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
