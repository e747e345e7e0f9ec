package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// played is a node that says what a test wants; its counters grow with each look.
type played struct {
	*httptest.Server
	looks atomic.Int64
	broke atomic.Bool
}

func newPlayed(t *testing.T) (*played, *Source) {
	p := &played{}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p, &Source{Base: p.URL, Client: p.Client(), Bearer: func() (string, error) { return "t", nil }}
}

func (p *played) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Header.Get("Authorization") != "Bearer t" || p.broke.Load():
		http.Error(w, "not \x1b[31mfor you", http.StatusForbidden)
	case r.URL.Path == "/readyz":
		w.WriteHeader(http.StatusServiceUnavailable) // it drains
		io.WriteString(w, `{"status":"draining","node":"n1","version":"liveserver v1","degraded":["redis"],"uptime_ms":3723000}`)
	case r.URL.Path == "/api/v1/rooms":
		io.WriteString(w, `{"rooms":[
			{"id":"big","title":"今晚直播","online":1200,"people":1100,"likes":5,"rates":{"danmaku":3,"gift":0.5,"like":1}},
			{"id":"busy","title":"\u001b[2J\u202egone","online":70,"people":70,"likes":9,"closed":true,"rates":{"danmaku":80.25,"gift":2,"like":0}}]}`)
	case r.URL.Path == "/api/v1/rooms/busy":
		io.WriteString(w, `{"id":"busy","title":"x","online":70,"people":70,"likes":9,"rates":{"danmaku":80.25,"gift":2,"like":0,"degraded":1,"refused":40},
			"quota":[{"rule":"danmaku-room","action":"danmaku","level":3,"burst":300}],
			"refusals":[{"user":"小明\u001b]0;title\u0007","action":"danmaku","reason":"rate_limited","rule":"danmaku-user-room","count":17,"age_ms":61500}]}`)
	case r.URL.Path == "/metrics":
		n := p.looks.Add(1)
		fmt.Fprintf(w, `liveroom_sessions 1270
process_resident_memory_bytes 104857600
liveroom_bus_connected 1
liveroom_breaker_state{dependency="redis"} 2
liveroom_redis_calls_total{op="room",result="ok"} %d
liveroom_hook_away{hook="hook_gift"} 1
liveroom_overload{stage="ticks"} 1
liveroom_limit_decisions_total{rule="a",outcome="reject"} %d
liveroom_limit_decisions_total{rule="b",outcome="reject"} %d
liveroom_limit_decisions_total{rule="c",outcome="allow"} %d
liveroom_bus_gift_seconds_bucket{le="0.01"} %d
liveroom_bus_gift_seconds_bucket{le="0.1"} %d
liveroom_bus_gift_seconds_bucket{le="+Inf"} %d
liveroom_bus_gift_seconds_sum 1
liveroom_bus_gift_seconds_count %d
`, n, n*1_000_000, n*2_000_000, n*9, n*98, n*100, n*100, n*100)
	default:
		http.NotFound(w, r)
	}
}

// TestOnce: what is printed for scripts has no control sequence, and rates are of the time between two looks.
func TestOnce(t *testing.T) {
	t.Parallel()
	_, source := newPlayed(t)
	var out bytes.Buffer
	if err := (&Screen{Source: source, Every: 10 * time.Millisecond, Sort: "messages"}).Once(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{
		"liveroom n1  draining  up 1h2m3s  ", "\ndegraded: redis\n", "sessions 1270 ", "memory 100 MiB", "gives up ticks", "ledger p99 100.0 ms", "NATS connected", "Redis away", "hooks away: hook_gift",
		"\nROOM by messages  ", "今晚直播\n", "  [2Jgone\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if !regexp.MustCompile(`refused/s  b \d+\.\dM  a \d+\.\dM\n`).MatchString(text) {
		t.Errorf("who refuses most:\n%s", text)
	}
	if strings.Index(text, "busy (closed)") > strings.Index(text, "\nbig ") || strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("order, or what steers a terminal:\n%q", text)
	}
	if _, err := source.Look(t.Context(), ""); err != nil {
		t.Error(err)
	}
	source.Bearer = func() (string, error) { return "other", nil }
	if _, err := source.Look(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "403") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("a stranger: %v", err)
	}
	source.Bearer = func() (string, error) { return "", errors.New("no secret") }
	if err := (&Screen{Source: source}).Once(t.Context(), &out); err == nil || err.Error() != "no secret" {
		t.Errorf("without a token: %v", err)
	}
}

// terminal is what a screen draws on.
type terminal struct {
	mu   sync.Mutex
	text string // all that was written; guarded by mu
}

func (s *terminal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text += string(p)
	return len(p), nil
}

// shows waits for a frame with all that; "-" before it: without.
func (s *terminal) shows(t *testing.T, want ...string) {
	t.Helper()
	var last string
	for range 1500 {
		s.mu.Lock()
		frames := strings.Split(s.text, home)
		last = frames[len(frames)-1]
		s.mu.Unlock()
		good := strings.Contains(last, "q quit")
		for _, w := range want {
			w, without := strings.CutPrefix(w, "-")
			good = good && strings.Contains(last, w) != without
		}
		if good {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("want %q, have:\n%q", want, last)
}

// TestKeys: rooms are sorted and chosen, one is opened and left, a node that does not answer is said to and shown again, and whoever
// quits has his terminal back.
func TestKeys(t *testing.T) {
	t.Parallel()
	p, source := newPlayed(t)
	keys, typed := io.Pipe()
	out := &terminal{}
	s := &Screen{Source: source, Every: 50 * time.Millisecond, Keys: keys, Size: func() (int, int) { return 100, 30 }}
	ended := make(chan error)
	go func() { ended <- s.Run(t.Context(), out) }()
	press := func(k string) { io.WriteString(typed, k) }
	row := func(room string) string { return standOut + room + " " }
	out.shows(t, "ROOM by viewers", "-"+row("big"), "-"+row("busy"))
	press("\x1b[B")
	out.shows(t, row("big"))
	press("j")
	out.shows(t, row("busy (closed)"))
	press("m")
	out.shows(t, "ROOM by messages", row("busy (closed)"))
	press("k")
	out.shows(t, row("busy (closed)")) // the first already
	press("\r")
	out.shows(t, standOut+"room busy  x", "danmaku-room", "小明]0;title", "danmaku-user-room", "17", "1m1s", "-ROOM by")
	p.broke.Store(true)
	out.shows(t, "answers 403 Forbidden: not [31mfor you")
	p.broke.Store(false)
	out.shows(t, "-answers 403")
	press("\x1b")
	out.shows(t, "ROOM by messages")
	press("sss")
	out.shows(t, "ROOM by viewers")
	press("q")
	if err := <-ended; err != nil || !strings.HasPrefix(out.text, enter) || !strings.HasSuffix(out.text, leave) {
		t.Errorf("at the end: %v", err)
	}
	typed.Close()

	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- s.Run(ctx, out) }()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("told to end: %v", err)
	}
}

// TestNarrowTerminals: no line is wider or lower than the terminal, whatever that is.
func TestNarrowTerminals(t *testing.T) {
	t.Parallel()
	_, source := newPlayed(t)
	l, err := source.Look(t.Context(), "busy")
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(summary(since{l, l}, 0)); !strings.Contains(text, "refused/s  nobody") {
		t.Errorf("rates of no time: %s", text)
	}
	if n := columns("今晚a\u0301"); n != 5 {
		t.Errorf("%d columns", n)
	}
	for _, v := range []view{{}, {selected: "busy"}, {selected: "busy", opened: true}} {
		for wide := 1; wide < 220; wide++ {
			for _, high := range []int{1, 10, 50} {
				lines := v.lines(since{l, l}, wide, high)
				if len(lines) > high {
					t.Errorf("%d lines of %d", len(lines), high)
				}
				for _, line := range lines {
					if columns(line.text) > wide {
						t.Errorf("%d columns of %d: %q", columns(line.text), wide, line.text)
					}
				}
			}
		}
	}
	many := &Look{}
	for i := range 100 {
		many.Rooms = append(many.Rooms, listed{ID: fmt.Sprintf("r%02d", i)})
	}
	v := view{by: 3, selected: "r60"}
	table := v.table(many, 80, 5)
	if len(table) != 6 || !strings.HasPrefix(table[1].text, "r58") || !table[3].marked || !strings.HasPrefix(table[5].text, "r62") {
		t.Errorf("around the chosen one: %v", table)
	}
}
