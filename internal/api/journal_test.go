package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"liveroom/internal/journal"
	"liveroom/protocol"
)

// shelf has gifts alone, of rooms by turns.
type shelf struct {
	mu     sync.Mutex
	gifts  int
	broken bool
	kept   map[string]journal.Kept
	last   uint64 // revision of kept
	before func() // once before something is kept
}

func (s *shelf) Kept(_ context.Context, name string) (journal.Kept, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[name], nil
}

func (s *shelf) Keep(_ context.Context, k journal.Kept) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.before; f != nil {
		s.before = nil
		f()
	}
	if s.kept[k.Name].Revision != k.Revision {
		return 0, journal.ErrMoved
	}
	s.last++
	k.Revision = s.last
	s.kept[k.Name] = k
	return k.Revision, nil
}

func (s *shelf) Forget(_ context.Context, k journal.Kept) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[k.Name].Revision != k.Revision {
		return journal.ErrMoved
	}
	delete(s.kept, k.Name)
	return nil
}

func (s *shelf) AllKept(context.Context) (out []journal.Kept, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kept {
		out = append(out, k)
	}
	return out, nil
}

func (s *shelf) give() { s.mu.Lock(); s.gifts++; s.mu.Unlock() }

func (s *shelf) State(_ context.Context, l journal.Log) (journal.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := journal.State{Name: "x", First: 1, Asked: time.UnixMilli(1e6)}
	if l == journal.Gifts {
		st.Last = uint64(s.gifts)
	}
	if s.broken {
		return st, errors.New("no answer")
	}
	return st, nil
}

func (s *shelf) Records(_ context.Context, l journal.Log, q journal.Query) (out []journal.Record, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := max(int(q.From), 1); l == journal.Gifts && i <= s.gifts; i++ {
		r := journal.Record{Seq: uint64(i), Time: time.UnixMilli(int64(i)), Room: []string{"other", "demo"}[i%2], Kind: journal.Gift, Event: json.RawMessage(`{"ev":"gift"}`)}
		if (q.Room == "" || q.Room == r.Room) && !r.Time.Before(q.Since) && len(out) < q.Most {
			out = append(out, r)
		}
	}
	return out, nil
}

func newShelfWorld(t *testing.T, gifts int) (*world, *shelf, context.CancelFunc) {
	s := &shelf{gifts: gifts, kept: map[string]journal.Kept{}}
	ending, end := context.WithCancel(t.Context())
	return newWorld(t, func(c *Config) {
		c.Consumers, c.Ending = journal.Consumers{Journal: journal.Journal{Store: s}, Keeper: s}, ending
	}), s, end
}

func TestEventsAreReadOn(t *testing.T) {
	w, s, _ := newShelfWorld(t, 5)
	service := w.token(protocol.RoleService)
	read := func(bearer, query string) (ids []string, next string) {
		t.Helper()
		res, body := w.call("GET", "/events"+query, bearer, "")
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %v", query, res.StatusCode, body)
		}
		for _, e := range body["events"].([]any) {
			ids = append(ids, e.(map[string]any)["id"].(string))
		}
		return ids, body["next"].(string)
	}
	for _, c := range []struct{ bearer, query, want string }{
		{service, "", "g1 g2 g3 g4 g5"},
		{service, "?limit=2", "g1 g2"},
		{service, "?rooms=demo", "g1 g3 g5"},
		{service, "?rooms=demo,other&kinds=gift,danmaku", "g1 g2 g3 g4 g5"},
		{service, "?kinds=danmaku", ""},
		{service, "?since=4", "g4 g5"},
		{service, "?after=now", ""},
		{w.token(protocol.RoleService, "demo"), "", "g1 g3 g5"},
		{w.token(protocol.RoleAdmin), "?limit=1", "g1"},
	} {
		if ids, _ := read(c.bearer, c.query); strings.Join(ids, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.query, ids, c.want)
		}
	}
	_, next := read(service, "?limit=2")
	if ids, _ := read(service, "?after="+next); strings.Join(ids, " ") != "g3 g4 g5" {
		t.Errorf("behind the second: %v", ids)
	}
	_, next = read(service, "?after=now")
	s.give()
	if ids, _ := read(service, "?wait=25&after="+next); strings.Join(ids, " ") != "g6" {
		t.Errorf("behind now: %v", ids)
	}
}

func TestEventsThatAreRefused(t *testing.T) {
	w, s, _ := newShelfWorld(t, 1)
	service := w.token(protocol.RoleService)
	for _, c := range []struct {
		bearer, query string
		status        int
		part          string
	}{
		{"", "", 401, ""},
		{w.token(protocol.RoleViewer), "", 403, ""},
		{w.token(protocol.RoleHost, "demo"), "", 403, ""},
		{w.token(protocol.RoleService, "demo"), "?rooms=other", 403, ""},
		{service, "?after=x", 400, "after"},
		{service, "?since=1&after=now", 400, "since"},
		{service, "?kinds=joins", 400, "kinds"},
		{service, "?rooms=a/b", 400, "rooms"},
		{service, "?rooms=" + strings.Repeat("a,", 100) + "a", 400, "rooms"},
		{service, "?limit=1001", 400, "limit"},
		{service, "?wait=26", 400, "wait"},
	} {
		res, body := w.call("GET", "/events"+c.query, c.bearer, "")
		if msg, _ := body["msg"].(string); res.StatusCode != c.status || !strings.Contains(msg, c.part) {
			t.Errorf("%.40s: %d %v", c.query, res.StatusCode, body)
		}
	}
	s.broken = true
	for _, header := range []string{"", "text/event-stream"} {
		if res, body := w.call("GET", "/events", service, "", "Accept", header); res.StatusCode != 503 || body["reason"] != "try_later" {
			t.Errorf("a store that does not answer: %d %v", res.StatusCode, body)
		}
	}
}

// A stream has the place behind each entry as its id, comes back to it, and ends with the server.
func TestEventsAreStreamed(t *testing.T) {
	w, s, end := newShelfWorld(t, 2)
	server := httptest.NewServer(w.h)
	defer server.Close()
	open := func(last string) *bufio.Scanner {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+Prefix+"/events", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+w.token(protocol.RoleService))
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Last-Event-ID", last)
		res, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || got != "text/event-stream; charset=utf-8" {
			t.Fatal(res.StatusCode, got)
		}
		return bufio.NewScanner(res.Body)
	}
	// next reads to the next entry.
	next := func(lines *bufio.Scanner) (entry, id string) {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				id = text
			}
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var e journal.Entry
				if err := json.Unmarshal([]byte(text), &e); err != nil {
					t.Fatal(err)
				}
				return e.ID, id
			}
		}
		return "", id
	}
	first := open("")
	one, place := next(first)
	if two, _ := next(first); one != "g1" || two != "g2" {
		t.Errorf("streamed %s, %s", one, two)
	}
	s.give()
	if three, _ := next(first); three != "g3" {
		t.Errorf("streamed %s as it came", three)
	}
	if two, _ := next(open(place)); two != "g2" {
		t.Errorf("came back to %s", two)
	}
	end()
	if more, id := next(first); more != "" || id == "" {
		t.Errorf("after the end: %q %q", more, id)
	}
}
