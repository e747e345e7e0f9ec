package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"liveroom/internal/hooktest"
)

// inbox is a platform that takes events, and is out of order for most of the time.
type inbox struct {
	t *testing.T

	mu     sync.Mutex
	well   bool // nothing goes wrong
	rng    *rand.Rand
	rooms  map[string][]string // ids as they came first, by room
	known  map[string]bool
	calls  int
	broken map[string]int // what went wrong, by what it was
}

func newInbox(t *testing.T) *inbox {
	return &inbox{t: t, rng: rand.New(rand.NewPCG(1, 2)), rooms: map[string][]string{}, known: map[string]bool{}, broken: map[string]int{}}
}

func (i *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if err := hooktest.Verify(r.Header, body, time.Now(), walletSecret); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	var got struct {
		Type string
		Data struct {
			Events []struct{ ID, Kind, Room string }
		}
	}
	if err := json.Unmarshal(body, &got); err != nil {
		i.t.Error(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	fault := 0.0
	if got.Type == "events" && !i.well {
		fault = i.rng.Float64()
	}
	switch {
	case fault > 0.8:
		i.broken["before"]++
		w.WriteHeader([]int{429, 500, 503}[i.rng.IntN(3)])
		return
	case fault > 0.7:
		i.broken["cut off"]++
		panic(http.ErrAbortHandler)
	}
	for _, e := range got.Data.Events {
		if !i.known[e.ID] {
			i.known[e.ID] = true
			i.rooms[e.Room] = append(i.rooms[e.Room], e.ID)
		}
	}
	i.calls++
	if fault > 0.5 { // it has them, and nobody is told so
		i.broken["after"]++
		panic(http.ErrAbortHandler)
	}
	io.WriteString(w, `{"ok":true}`)
}

// skipped compares what was taken with what the feed has.
func (i *inbox) skipped(feed map[string][]string) (faults []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for room, want := range feed {
		// A crash may take the end of what is written behind from the feed after it was delivered.
		got := slices.DeleteFunc(slices.Clone(i.rooms[room]), func(id string) bool { return !slices.Contains(want, id) })
		if !slices.Equal(got, want) {
			faults = append(faults, fmt.Sprintf("room %q: %d of %d, in order %v", room, len(got), len(want), slices.IsSortedFunc(got, func(a, b string) int {
				return slices.Index(want, a) - slices.Index(want, b)
			})))
		}
	}
	return faults
}

// webhookPlace awaits the consumer of the webhook books, and returns where it is.
func webhookPlace(t *testing.T, p *process, token string) (cursor string) {
	t.Helper()
	await(t, "a webhook's consumer", func() bool {
		cursor = p.call(t, http.MethodGet, "/consumers/webhook-books", token, "").body.str("cursor")
		return cursor != ""
	})
	return cursor
}

// awaitFeed mends the platform, waits until it has all of the feed since a cursor, and returns that, by room.
func (i *inbox) awaitFeed(t *testing.T, p *process, token, begin, kinds string) map[string][]string {
	t.Helper()
	i.mu.Lock()
	i.well = true
	i.mu.Unlock()
	feed := map[string][]string{}
	var faults []string
	defer func() {
		if t.Failed() {
			t.Logf("%q", faults)
		}
	}()
	await(t, "all of the feed at the platform", func() bool {
		clear(feed)
		for after, more := begin, true; more; {
			page := p.call(t, http.MethodGet, "/events?kinds="+kinds+"&limit=1000&after="+after, token, "")
			events, ok := page.body["events"].([]any)
			if !ok {
				return false
			}
			for _, e := range events {
				e := event(e.(map[string]any))
				feed[e.str("room")] = append(feed[e.str("room")], e.str("id"))
			}
			after, more = page.body.str("next"), page.body["more"] == true
		}
		faults = i.skipped(feed)
		return len(faults) == 0
	})
	return feed
}

// TestWebhooksSkipNothing kills a node again and again, and has a platform fail that events are delivered to: in the end that has all that
// the feed has, in the order of each room.
func TestWebhooksSkipNothing(t *testing.T) {
	t.Parallel()
	box := newInbox(t)
	platform := httptest.NewServer(box)
	defer platform.Close()
	dir := t.TempDir()
	service := tokenFor(t, dir, "-sub", "shop", "-role", "service")
	args := []string{"-hooks-secrets", walletSecret, "-webhooks", `[{name: books, url: "` + platform.URL + `/?key=hidden", kinds: [gift, danmaku, moderation, room]}]`}
	p := startProcess(t, dir, args...)
	begin := webhookPlace(t, p, service)

	given := map[string]bool{} // mids of what was acknowledged as stored
	speak := func(n int) {
		for _, room := range []string{"a", "b", "c"} {
			path, body := "/gifts", fmt.Sprintf(`{"user":{"id":"ann"},"id":"%s%d","gift":"rose"}`, room, n)
			if n%3 == 0 {
				path, body = "/danmaku", fmt.Sprintf(`{"user":{"id":"ann%d"},"id":"%s%d","text":"number %[1]d"}`, n, room, n)
			}
			if ack := p.call(t, http.MethodPost, "/rooms/"+room+path, service, body); ack.status == http.StatusOK && path == "/gifts" {
				given[ack.body.str("mid")] = true
			}
		}
	}
	n := 0
	for range 4 {
		for range 12 {
			speak(n)
			n++
		}
		p.kill()
		if strings.Contains(p.logs.String(), "hidden") {
			t.Errorf("the log tells the address: %s", p.logs)
		}
		p = startProcess(t, dir, args...)
	}
	speak(n)
	feed := box.awaitFeed(t, p, service, begin, "gift,danmaku,moderation,room")
	in := map[string]bool{}
	for _, ids := range feed {
		for _, id := range ids {
			in[id] = true
		}
	}
	for mid := range given {
		if !in[mid] {
			t.Errorf("gift %s was acknowledged and is not in the feed", mid)
		}
	}
	dead := p.call(t, http.MethodGet, "/consumers/webhook-books/dead", service, "")
	if dead.status != http.StatusOK || len(dead.body["dead"].([]any)) > 0 {
		t.Errorf("dead letters: %v", dead)
	}
	box.mu.Lock()
	defer box.mu.Unlock()
	t.Logf("%d events in the feed, %d gifts acknowledged, %d calls taken, %v", len(in), len(given), box.calls, box.broken)
	if len(given) == 0 || box.broken["before"]+box.broken["cut off"] == 0 || box.broken["after"] == 0 {
		t.Error("nothing went wrong")
	}
}

// A platform that skips an event, or has two of a room the wrong way round, is caught.
func TestASkippedEventIsCaught(t *testing.T) {
	feed := map[string][]string{"a": {"g1", "g2", "d3"}}
	for _, c := range []struct {
		got  string
		good bool
	}{{"g1 g2 d3", true}, {"g1 g2 lost d3", true}, {"g1 d3", false}, {"g2 g1 d3", false}} {
		box := newInbox(t)
		box.rooms["a"] = strings.Fields(c.got)
		if faults := box.skipped(feed); len(faults) == 0 != c.good {
			t.Errorf("%s: %q", c.got, faults)
		}
	}
}

// TestWebhooksAreTried: hook-test says what is wrong with a platform that is to take events.
func TestWebhooksAreTried(t *testing.T) {
	box := newInbox(t)
	box.well = true
	platform := httptest.NewServer(box)
	defer platform.Close()
	for secret, want := range map[string]bool{walletSecret: true, "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD": false} {
		out := &lines{}
		err := run(t.Context(), []string{"hook-test", "-hooks-secrets", secret, "-webhooks", "[{name: books, url: '" + platform.URL + "'}]"}, out, out, nil)
		if good := err == nil && strings.Contains(out.String(), "ok     webhook_books: and again, as after a crash"); good != want || strings.Contains(out.String(), "WRONG") == want {
			t.Errorf("good %v: %v\n%s", want, err, out)
		}
	}
	if len(box.rooms["hook-test"]) != 2 {
		t.Errorf("taken: %v", box.rooms)
	}
}
