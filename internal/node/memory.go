package node

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
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

// Bounds of what a quiet node keeps beyond what is in use. The runtime collects by itself when the heap has doubled, which
// on a node that has gone quiet after a burst takes minutes, and gives back slowly.
const (
	memoryEvery   = 5 * time.Second
	memoryRest    = 10 * time.Second // without a collection, so that it is quiet
	memorySurplus = 16 << 20         // and half of what is in use
)

// surplus tells when memory is worth giving back.
type surplus struct {
	samples []metrics.Sample
	cycles  uint64        // of the collector, at the last look
	quiet   time.Duration // since then
}

func newSurplus() *surplus {
	s := &surplus{}
	for _, name := range []string{
		"/gc/cycles/total:gc-cycles", "/gc/heap/live:bytes", "/memory/classes/heap/objects:bytes", "/memory/classes/heap/free:bytes",
	} {
		s.samples = append(s.samples, metrics.Sample{Name: name})
	}
	return s
}

// look reads the runtime's figures, every so often, and reports whether the node is quiet and holds more than it needs.
func (s *surplus) look(every time.Duration) bool {
	metrics.Read(s.samples)
	v := func(i int) uint64 { return s.samples[i].Value.Uint64() }
	return s.judge(every, v(0), tooMuch(v(1), v(2), v(3)))
}

// judge is look with the figures given.
func (s *surplus) judge(since time.Duration, cycles uint64, much bool) bool {
	if cycles != s.cycles {
		s.cycles, s.quiet = cycles, 0
		return false
	}
	s.quiet += since
	return s.quiet >= memoryRest && much
}

// tooMuch judges what lay about at the last collection and since: live objects then, objects now, free memory not given back.
func tooMuch(live, objects, free uint64) bool {
	over := free
	if objects > live {
		over += objects - live
	}
	return over > max(memorySurplus, live/2)
}

// giveBack gives memory back when the node has gone quiet. It is called each [memoryEvery].
func (s *surplus) giveBack(context.Context) {
	if s.look(memoryEvery) {
		debug.FreeOSMemory() // collects first
	}
}
