package main

import (
	"encoding/json"
	"net/http"
	"runtime"
	"runtime/debug"
)

// memory is what the Go runtime holds, in bytes, after it gave back what it could.
type memory struct {
	Heap       uint64 `json:"heap_bytes"`     // of live objects
	InUse      uint64 `json:"in_use_bytes"`   // of spans with live objects
	Idle       uint64 `json:"idle_bytes"`     // of empty spans that are still resident
	Stacks     uint64 `json:"stack_bytes"`    // of goroutines
	Overhead   uint64 `json:"overhead_bytes"` // of the runtime's own structures
	Goroutines int    `json:"goroutines"`
}

// freeMemory is POST /debug/free: it collects garbage, gives free memory back to the system, and says what is left. The
// runtime does the same by itself within minutes; this is for whoever measures what is in use now.
func freeMemory(w http.ResponseWriter, _ *http.Request) {
	runtime.GC() // what only pools and finalizers hold survives one collection
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(memory{ // fails only when nobody listens any more
		Heap: m.HeapAlloc, InUse: m.HeapInuse, Idle: m.HeapIdle - m.HeapReleased, Stacks: m.StackInuse,
		Overhead: m.MSpanInuse + m.MCacheInuse + m.GCSys + m.OtherSys + m.BuckHashSys, Goroutines: runtime.NumGoroutine(),
	})
}
