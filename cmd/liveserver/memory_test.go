package main

import (
	"encoding/json"
	"net/http"
	"testing"
)

// Memory is given back and reported by a POST, never by following a link.
func TestFreeMemory(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	status, body := s.askAdmin(t, http.MethodPost, "/debug/free", s.adminToken)
	var m struct {
		Heap       uint64 `json:"heap_bytes"`
		InUse      uint64 `json:"in_use_bytes"`
		Stacks     uint64 `json:"stack_bytes"`
		Goroutines int    `json:"goroutines"`
	}
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
