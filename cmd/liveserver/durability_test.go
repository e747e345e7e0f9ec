package main

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// TestGiftSurvivesKill: an acknowledged gift is there after kill -9, the same id again gives the same seq and one
// effect, and the next gift's prev is the one before. What was told of the show's persons does not fall.
func TestGiftSurvivesKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ann := tokenFor(t, dir, "-sub", "ann")
	p := startProcess(t, dir)
	c := join(t, p.url, "demo", ann)
	first := c.askAs("g1", "gift", `,"gift":"rose","count":2`)
	last := c.askAs("g2", "gift", `,"gift":"tea"`)
	if first.num("code") != 200 || last.num("code") != 200 {
		t.Fatalf("gifts: %v %v", first, last)
	}
	again := c.askAs("g1", "gift", `,"gift":"rose","count":2`)
	if again.num("seq") != first.num("seq") || again["duplicate"] != true {
		t.Errorf("the same id before the kill: %v, first %v", again, first)
	}
	join(t, p.url, "demo", "")
	people := func() int {
		return int(p.call(t, http.MethodGet, "/rooms/demo", p.adminToken, "").body.in("show").num("people"))
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); people() != 2; {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("never are both persons in the show")
		}
	}
	p.kill()

	p = startProcess(t, dir)
	if n := people(); n != 2 {
		t.Errorf("after the kill the show has %d persons", n)
	}
	c = join(t, p.url, "demo", ann, fmt.Sprintf(`,"resume":{"gift":%d,"chat":1}`, first.num("seq")))
	if c.welcome.in("recovered")["gift"] != true || c.welcome.in("cursor").num("gift") != last.num("seq") {
		t.Errorf("welcome after the kill: %v", c.welcome)
	}
	if e := c.wait("the missed gift", func(e event) bool { return e.kind() == "gift" }); e.num("seq") != last.num("seq") || e.num("prev") != first.num("seq") {
		t.Errorf("missed gift %v", e)
	}
	again = c.askAs("g2", "gift", `,"gift":"tea"`)
	if again.num("code") != 200 || again.num("seq") != last.num("seq") || again["duplicate"] != true || again.str("mid") != last.str("mid") {
		t.Errorf("the same id after the kill: %v, first %v", again, last)
	}
	if other := c.askAs("g2", "gift", `,"gift":"rocket"`); other.num("code") != 409 {
		t.Errorf("the same id with another content after the kill: %v", other)
	}
	next := c.askAs("g3", "gift", `,"gift":"rose"`)
	if e := c.wait("the next gift", func(e event) bool { return e.kind() == "gift" }); e.num("seq") != next.num("seq") || e.num("prev") != last.num("seq") {
		t.Errorf("next gift %v after %v", e, next)
	}
	sum := p.call(t, http.MethodGet, "/rooms/demo/summary", p.adminToken, "").body
	if g := sum.in("gifts"); g.num("count") != 3 || g.num("givers") != 1 || g.num("value") == 0 || sum.in("show").num("people") != 2 || g["partial"] != nil {
		t.Errorf("the show's summary: %v", sum)
	}
	list := p.call(t, http.MethodGet, "/rooms/demo/gifts", p.adminToken, "")
	if gifts := list.body["gifts"].([]any); len(gifts) != 3 {
		t.Errorf("the ledger holds %v", gifts)
	}
}

// TestGiftsInFlightAtKill: of gifts under way at kill -9, those acknowledged are stored, and sending all ids again
// leaves each exactly once.
func TestGiftsInFlightAtKill(t *testing.T) {
	t.Parallel()
	const users = 8
	dir := t.TempDir()
	tokens := make([]string, users)
	for i := range tokens {
		tokens[i] = tokenFor(t, dir, "-sub", fmt.Sprintf("u%d", i))
	}
	p := startProcess(t, dir)
	var mu sync.Mutex
	acked := map[string]int64{}
	var wg sync.WaitGroup
	clients := make([]*client, users) // all are in before the first gift: what kills is the acks
	for i := range clients {
		clients[i] = join(t, p.url, "demo", tokens[i])
	}
	for i, c := range clients {
		wg.Go(func() {
			for n := range 10 {
				c.tell(fmt.Sprintf(`{"op":"gift","id":"g%d","gift":"rose"}`, n))
			}
			for {
				events, err := c.read()
				if err != nil {
					return
				}
				mu.Lock()
				for _, e := range events {
					if e.kind() == "ack" && e.num("code") == 200 {
						acked[fmt.Sprintf("u%d/%s", i, e.str("id"))] = e.num("seq")
					}
				}
				enough := len(acked) >= users*4
				mu.Unlock()
				if enough {
					p.kill()
				}
			}
		})
	}
	wg.Wait()

	p = startProcess(t, dir)
	seqs := map[int64]string{}
	for i := range users {
		c := join(t, p.url, "demo", tokens[i])
		for n := range 10 {
			key, ack := fmt.Sprintf("u%d/g%d", i, n), c.askAs(fmt.Sprintf("g%d", n), "gift", `,"gift":"rose"`)
			if ack.num("code") != 200 {
				t.Fatalf("%s again: %v", key, ack)
			}
			if seq, was := acked[key]; was && (seq != ack.num("seq") || ack["duplicate"] != true) {
				t.Errorf("%s was acknowledged as %d and is now %v", key, seq, ack)
			}
			if other, twice := seqs[ack.num("seq")]; twice {
				t.Errorf("%s and %s are both gift %d", key, other, ack.num("seq"))
			}
			seqs[ack.num("seq")] = key
		}
	}
	list := p.call(t, http.MethodGet, "/rooms/demo/gifts?limit=1000", p.adminToken, "")
	if gifts := list.body["gifts"].([]any); len(gifts) != users*10 {
		t.Errorf("the ledger holds %d gifts, sent were %d", len(gifts), users*10)
	}
}

// TestLikesOutliveTheServer: the total goes on where it was, after a clean stop and after kill -9.
func TestLikesOutliveTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	c := join(t, s.url, "demo", "")
	c.ask("like", `,"count":7`)
	if err := s.stop(); err != nil { // before the taps are a second old: the stop must store them
		t.Fatal(err)
	}
	p := startProcess(t, dir)
	c = join(t, p.url, "demo", "")
	if got := c.welcome.in("room").num("likes"); got != 7 {
		t.Fatalf("after a clean stop %d likes, want 7", got)
	}
	c.ask("like", `,"count":5`)
	if e := c.wait("likes", func(e event) bool { return e.kind() == "like" }); e.num("total") != 12 {
		t.Errorf("likes %v", e)
	}
	p.kill()
	p = startProcess(t, dir)
	if got := join(t, p.url, "demo", "").welcome.in("room").num("likes"); got != 12 {
		t.Errorf("after kill -9 %d likes were left of 12 that were shown", got)
	}
}

// TestSettingsOutliveTheServer: so do title and slow mode, and the words that are not wanted.
func TestSettingsOutliveTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startProcess(t, dir)
	if res := p.call(t, http.MethodPut, "/rooms/demo", p.hostToken, `{"title":"今夜","slow_mode_ms":5000,"filter":{"words":[{"word":"silver","action":"refuse"}]}}`); res.status != 200 {
		t.Fatalf("PUT: %v", res)
	}
	if res := p.call(t, http.MethodPut, "/filter", p.adminToken, `{"words":[{"word":"gold","action":"hold"}]}`, "If-Match", `"v1"`); res.status != 200 {
		t.Fatalf("PUT words: %v", res)
	}
	p.kill()
	p = startProcess(t, dir)
	room := join(t, p.url, "demo", "").welcome.in("room")
	if room.str("title") != "今夜" || room.num("slow_mode_ms") != 5000 {
		t.Errorf("room after a kill: %v", room)
	}
	if tried := p.call(t, http.MethodPost, "/filter/test", p.adminToken, `{"text":"g-o-l-d, S.I.L.V.E.R","room":"demo"}`); len(tried.body["hits"].([]any)) != 2 {
		t.Errorf("the words after a kill: %v", tried.body)
	}
}
