package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liveroom/internal/redistest"
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
	await(t, "all of it is in the events", func() bool { return strings.Count(events(), "text-") == 3 }) // before a gift, which would overtake it
	if res := s.call(t, http.MethodPost, "/rooms/demo/gifts", service, `{"user":{"id":"ann"},"id":"g","gift":"rose"}`); res.status != 200 {
		t.Fatal(res.body)
	}
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

// TestAnErasedNameIsShownNowhere: who gave, was answered or was refused has no name any more on any road, on nodes that were there and on one that
// comes later, and the amounts are what they were.
func TestAnErasedNameIsShownNowhere(t *testing.T) {
	t.Parallel()
	nats, redis := natsServer(t), redistest.Start(t).URL()
	node := func(id string) *server { return startServer(t, "", "-nats", nats, "-redis", redis, "-node-id", id) }
	s, other := node("n1"), node("n2")
	service := s.adminToken
	ask := func(s *server, method, path, body string) event {
		t.Helper()
		res := s.call(t, method, path, service, body)
		if res.status != http.StatusOK && res.status != http.StatusTooManyRequests && res.status != http.StatusNotFound { // the latter: no show is stored yet
			t.Fatal(path, res)
		}
		return res.body
	}
	const name, by = "Nick of ann", `{"user":{"id":"ann","name":"Nick of ann"},"id":"%s"%s}`
	host := join(t, s.url, "demo", s.hostToken)
	seen := ask(s, "POST", "/rooms/demo/gifts", `{"user":{"id":"bob"},"id":"b","gift":"rose"}`).num("seq")
	ask(s, "POST", "/rooms/demo/gifts", fmt.Sprintf(by, "a", `,"gift":"rose","count":3`))
	said := ask(s, "POST", "/rooms/demo/danmaku", fmt.Sprintf(by, "first", `,"text":"first"`)).str("mid")
	answer := ask(other, "POST", "/rooms/demo/danmaku", `{"user":{"id":"bob"},"id":"re","text":"answered","reply":"`+said+`"}`).str("mid")
	host.wait("the answer", func(e event) bool { return e.str("mid") == answer })
	if ack := host.ask("moderate", `,"action":"pin","mid":"`+answer+`"`); ack.num("code") != 200 {
		t.Fatal(ack)
	}
	await(t, "a refusal", func() bool {
		return ask(s, "POST", "/rooms/demo/danmaku", fmt.Sprintf(by, rand.Text(), `,"text":"`+rand.Text()+`"`)).num("code") == http.StatusTooManyRequests
	})
	roads := map[string]func(*server) string{
		"the gifts": func(s *server) string { return fmt.Sprint(ask(s, "GET", "/rooms/demo/gifts", "")) },
		"the events": func(s *server) string {
			return fmt.Sprint(ask(s, "GET", "/events?rooms=demo&kinds=gift,danmaku&limit=1000", ""))
		},
		"a summary":   func(s *server) string { return fmt.Sprint(ask(s, "GET", "/rooms/demo/summary", "")["refused"]) },
		"its gifts":   func(s *server) string { return fmt.Sprint(ask(s, "GET", "/rooms/demo/summary", "")["gifts"]) },
		"the room":    func(s *server) string { return fmt.Sprint(ask(s, "GET", "/rooms/demo", "")["pinned"]) },
		"refusals":    func(s *server) string { return fmt.Sprint(ask(s, "GET", "/rooms/demo", "")["refusals"]) },
		"who is this": func(s *server) string { return fmt.Sprint(ask(s, "GET", "/rooms/demo/users/bob", "")) },
		"a welcome": func(s *server) string {
			c := join(t, s.url, "demo", "")
			defer c.ws.CloseNow()
			return fmt.Sprint(c.welcome, c.pending)
		},
		"a resume": func(s *server) string {
			c := join(t, s.url, "demo", "", fmt.Sprintf(`,"resume":{"gift":%d,"chat":1}`, seen))
			defer c.ws.CloseNow()
			return fmt.Sprint(c.wait("a missed gift", func(e event) bool { return e.kind() == "gift" }))
		},
	}
	for road, read := range roads {
		await(t, road+" with the name", func() bool { return strings.Contains(read(s), name) })
	}
	page := join(t, other.url, "demo", "")
	if res := s.call(t, http.MethodDelete, "/users/ann", s.adminToken, ""); res.status != 200 {
		t.Fatal(res.body)
	}
	page.wait("erased", func(e event) bool { return e.kind() == "erased" })
	late := node("n3")
	for road, read := range roads {
		for i, s := range []*server{s, other, late} {
			await(t, fmt.Sprintf("%s without the name on n%d", road, i+1), func() bool { return !strings.Contains(read(s), name) })
		}
	}
	if gifts := ask(late, "GET", "/rooms/demo/gifts", "")["gifts"].([]any); len(gifts) != 2 || event(gifts[1].(map[string]any)).num("count") != 3 || event(gifts[1].(map[string]any)).in("user").str("id") != "ann" {
		t.Errorf("the ledger: %v", gifts)
	}
	if shown := roads["a welcome"](late); !strings.Contains(shown, "answered") {
		t.Errorf("who comes is not shown what others said: %s", shown)
	}
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
