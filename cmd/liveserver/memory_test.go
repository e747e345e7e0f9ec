package main

import (
	"encoding/json"
	"net/http"
	"testing"
)

// Memory is given back and reported by a POST, never by following a link.
func TestFreeMemory(t *testing.T) {
	s := startServer(t, "")
	res, err := http.Post(s.admin+"/debug/free", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var m memory
	if err := json.NewDecoder(res.Body).Decode(&m); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d %v", res.StatusCode, err)
	}
	if m.Heap == 0 || m.InUse < m.Heap || m.Stacks == 0 || m.Goroutines == 0 {
		t.Fatalf("%+v", m)
	}
	if res, err := http.Get(s.admin + "/debug/free"); err != nil || res.StatusCode == http.StatusOK {
		t.Fatalf("GET: %v %v", res.StatusCode, err)
	} else {
		res.Body.Close()
	}
}
