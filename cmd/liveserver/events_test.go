package main

import (
	"net/http"
	"testing"
	"time"
)

// eventIDs are those of a page of the journal, with its end.
func (s *server) eventIDs(t *testing.T, query string) (ids []string, next string) {
	t.Helper()
	res := s.call(t, http.MethodGet, "/events?"+query, s.adminToken, "")
	if res.status != http.StatusOK {
		t.Fatalf("%s: %d %v", query, res.status, res.body)
	}
	for _, e := range res.body["events"].([]any) {
		ids = append(ids, e.(map[string]any)["id"].(string))
	}
	return ids, res.body.str("next")
}

// TestEventsGoOnAfterKill: a back end goes on where it was when its node was killed, and misses no gift that was acknowledged.
func TestEventsGoOnAfterKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ann := tokenFor(t, dir, "-sub", "ann")
	p := startProcess(t, dir)
	c := join(t, p.url, "demo", ann)
	first := c.askAs("g1", "gift", `,"gift":"rose"`)
	said := c.askAs("d1", "danmaku", `,"text":"hello"`)
	if first.num("code") != 200 || said.num("code") != 200 {
		t.Fatal(first, said)
	}
	_, next := p.eventIDs(t, "wait=25&kinds=danmaku")
	got, next := p.eventIDs(t, "after="+next)
	if len(got) == 0 || got[len(got)-1] != first.str("mid") {
		t.Errorf("read %v, want all but the danmaku, and %s", got, first.str("mid"))
	}
	second := c.askAs("g2", "gift", `,"gift":"rose"`)
	if second.num("code") != 200 {
		t.Fatal(second)
	}
	p.kill()

	p = startProcess(t, dir)
	if got, _ := p.eventIDs(t, "kinds=gift&after="+next); len(got) != 1 || got[0] != second.str("mid") {
		t.Errorf("after the kill: %v, want %s", got, second.str("mid"))
	}
}

// TestAReaderWaitsLongerThanRequestsMay: the listener's bounds are for what clients send, and not for who waits.
func TestAReaderWaitsLongerThanRequestsMay(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	_, now := s.eventIDs(t, "after=now")
	began := time.Now()
	got, _ := s.eventIDs(t, "wait=17&after="+now)
	if took := time.Since(began); len(got) > 0 || took < 17*time.Second {
		t.Errorf("%v after %v", got, took)
	}
}
