package main

import (
	"encoding/json"
	"net/http"
	"testing"
)

// Memory is given back and reported by a POST, never by following a link.
func TestFreeMemory(t *testing.T) {
	s := startServer(t, "")
	status, body := s.askAdmin(t, http.MethodPost, "/debug/free", s.adminToken)
	var m memory
	if err := json.Unmarshal([]byte(body), &m); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, body, err)
	}
	if m.Heap == 0 || m.InUse < m.Heap || m.Stacks == 0 || m.Goroutines == 0 {
		t.Fatalf("%+v", m)
	}
	if status, _ := s.askAdmin(t, http.MethodGet, "/debug/free", s.adminToken); status == http.StatusOK {
		t.Fatalf("GET: %d", status)
	}
}

// A node gives memory back when it is quiet and has much to give, and never while the collector is at work anyway.
func TestMemoryIsGivenBackWhenQuiet(t *testing.T) {
	for _, c := range []struct {
		live, objects, free uint64
		want                bool
	}{
		{100 << 20, 110 << 20, 0, false},
		{100 << 20, 160 << 20, 0, true},
		{100 << 20, 90 << 20, 60 << 20, true},
		{100 << 20, 130 << 20, 30 << 20, true},
		{4 << 20, 12 << 20, 2 << 20, false},
		{4 << 20, 24 << 20, 0, true},
	} {
		if got := tooMuch(c.live, c.objects, c.free); got != c.want {
			t.Errorf("live %d, now %d, free %d: %v", c.live>>20, c.objects>>20, c.free>>20, got)
		}
	}
	s := newSurplus()
	s.look(memoryEvery) // the names of the figures are right, or it panics
	for i, c := range []struct {
		cycles uint64
		much   bool
		want   bool
	}{{1, true, false}, {1, true, false}, {2, true, false}, {2, true, false}, {2, false, false}, {2, true, true}, {3, true, false}, {3, true, false}, {3, true, true}} {
		if got := s.judge(memoryEvery, c.cycles+1<<40, c.much); got != c.want {
			t.Errorf("look %d: %v", i, got)
		}
	}
}
