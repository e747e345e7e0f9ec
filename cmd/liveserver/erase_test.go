package main

import (
	"bytes"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// holds counts the files below a directory that have some bytes.
func holds(t *testing.T, dir, text string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // a file of the store that is gone by now
		}
		raw, _ := os.ReadFile(path)
		if bytes.Contains(raw, []byte(text)) {
			n++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestWhatIsErasedIsGone: from pages, from who comes, from the events and from the disk, on two nodes, and nothing else is.
func TestWhatIsErasedIsGone(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 2)
	s, other := nodes[0], nodes[1]
	service := s.adminToken
	say := func(user, text string) {
		t.Helper()
		res := s.call(t, http.MethodPost, "/rooms/demo/danmaku", service, `{"user":{"id":"`+user+`","name":"Nick of `+user+`"},"id":"`+text+`","text":"`+text+`"}`)
		if res.status != 200 {
			t.Fatal(res.body)
		}
	}
	page := join(t, other.url, "demo", "")
	for _, text := range []string{"a1", "b1", "a2"} {
		user := map[byte]string{'a': "ann", 'b': "bob"}[text[0]]
		say(user, "text-"+text)
	}
	if res := s.call(t, http.MethodPost, "/rooms/demo/gifts", service, `{"user":{"id":"ann"},"id":"g","gift":"rose"}`); res.status != 200 {
		t.Fatal(res.body)
	}
	events := func() string {
		res := s.call(t, http.MethodGet, "/events?kinds=danmaku,gift&wait=0", s.adminToken, "")
		raw := ""
		for _, e := range res.body["events"].([]any) {
			entry := e.(map[string]any)
			event, _ := entry["event"].(map[string]any)
			raw += " " + entry["kind"].(string) + ":"
			if text, ok := event["text"].(string); ok {
				raw += text
			}
		}
		return raw
	}
	await(t, "all of it is in the events", func() bool { return strings.Count(events(), "text-") == 3 })
	_, place := s.eventIDs(t, "kinds=danmaku,gift&limit=1")
	if res := other.call(t, http.MethodDelete, "/users/ann", s.adminToken, ""); res.status != 200 || res.body.num("until") == 0 {
		t.Fatal(res.body)
	}
	began := time.Now()
	page.wait("erased", func(e event) bool { return e.kind() == "erased" && e.in("user").str("id") == "ann" })
	t.Logf("the page was told after %v", time.Since(began))
	await(t, "it is gone from the events", func() bool { return strings.Count(events(), "text-a") == 0 })
	t.Logf("gone from the events after %v", time.Since(began))
	if got := events(); !strings.Contains(got, "text-b1") || !strings.Contains(got, "gift:") || strings.Contains(got, "gap:") {
		t.Errorf("what is left: %s", got)
	}
	if ids, _ := s.eventIDs(t, "kinds=danmaku,gift&after="+place); len(ids) != 2 || strings.HasPrefix(ids[0], "gap") {
		t.Errorf("a reader whose place was erased goes on with %v", ids)
	}
	res := s.call(t, http.MethodGet, "/events?kinds=moderation", s.adminToken, "")
	acts := res.body["events"].([]any)
	if last := acts[len(acts)-1].(map[string]any)["event"].(map[string]any); last["action"] != "erase" || last["user"] != "ann" || last["text"] != nil {
		t.Errorf("who did it: %v", last)
	}
	if res := s.call(t, http.MethodDelete, "/users/ann", nodes[0].hostToken, ""); res.status != 403 {
		t.Errorf("a host erases a user: %v", res.body)
	}
	say("ann", "text-a3")
	await(t, "what is said later stays", func() bool { return strings.Contains(events(), "text-a3") })
}

// TestErasedBytesAreGone: a deleted message and a cleaned up one leave no bytes on the disk.
func TestErasedBytesAreGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	host := join(t, s.url, "demo", s.hostToken)
	ann := join(t, s.url, "demo", tokenFor(t, dir, "-sub", "ann"))
	const secret = "0xfeedface-of-ann"
	if ack := ann.ask("danmaku", `,"text":"`+secret+`"`); ack.num("code") != 200 {
		t.Fatal(ack)
	}
	await(t, "it is on the disk", func() bool { return holds(t, filepath.Join(dir, "nats"), secret) > 0 })
	if ack := host.ask("moderate", `,"action":"cleanup","user":"ann"`); ack.num("code") != 200 {
		t.Fatal(ack)
	}
	ann.wait("erased", func(e event) bool { return e.kind() == "erased" })
	await(t, "it is gone from the events", func() bool {
		ids, _ := s.eventIDs(t, "kinds=danmaku")
		return len(ids) == 0
	})
	if err := s.stop(); err != nil { // what waited to be written is written
		t.Fatal(err)
	}
	if n := holds(t, filepath.Join(dir, "nats"), secret); n > 0 {
		t.Errorf("%d files still have it", n)
	}
}
