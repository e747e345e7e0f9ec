package admit

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"liveroom/internal/lock"
)

// Headroom turns newcomers away while what this process holds leaves too little room below its memory limit. The limit is
// that of sessions.max_memory; without it what GOMEMLIMIT says, else nine tenths of what the container may use. The Go
// runtime is told the same limit, so that it collects its garbage before it gets there.
type Headroom struct {
	limit uint64 // bytes; 0: none. Fixed

	mu lock.Mutex[lock.Leaf]
	// guarded by mu
	read time.Time
	held uint64
}

const (
	headroomEvery = 100 * time.Millisecond // between two readings
	headroomRetry = 5 * time.Second        // told to who is turned away, at least
)

// NewHeadroom sets the runtime's limit. maxMemory is in bytes; 0: find one.
func NewHeadroom(maxMemory uint64) *Headroom {
	limit := maxMemory
	if limit == 0 {
		if said := debug.SetMemoryLimit(-1); said != math.MaxInt64 {
			return &Headroom{limit: uint64(said)}
		}
		limit = containerLimit("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes") / 10 * 9
	}
	if limit > 0 {
		debug.SetMemoryLimit(int64(min(limit, math.MaxInt64)))
	}
	return &Headroom{limit: limit}
}

// Limit is in bytes; 0: none.
func (h *Headroom) Limit() uint64 { return h.limit }

// containerLimit reads the limit of the first file that there is, of cgroup v2 or v1; 0 where there is none.
func containerLimit(files ...string) uint64 {
	const unlimited = 1 << 60 // v1 says 2^63 less a page
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
		if err != nil || n >= unlimited { // "max"
			return 0
		}
		return n
	}
	return 0
}

// Ready reports whether there is room for a newcomer, and otherwise when to come back. A quarter of the limit is kept for
// garbage, queues of slow viewers and everything that is no session.
func (h *Headroom) Ready() (retry time.Duration, ok bool) {
	if h.limit == 0 || h.now() <= h.limit/4*3 {
		return 0, true
	}
	return headroomRetry, false
}

// now is what the process holds, in bytes: the heap that was live at the last collection, stacks, and the runtime's own.
func (h *Headroom) now() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.read) < headroomEvery {
		return h.held
	}
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/memory/classes/metadata/mspan/inuse:bytes"},
		{Name: "/memory/classes/metadata/other:bytes"}, {Name: "/memory/classes/os-stacks:bytes"}, {Name: "/memory/classes/other:bytes"},
	}
	metrics.Read(samples)
	h.held, h.read = 0, time.Now()
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			h.held += s.Value.Uint64()
		}
	}
	return h.held
}

// LagProbe measures how late this process comes to what arrives for it. It sends itself a byte through a pipe, which goes
// the way of a viewer's frame: the kernel's list of what is ready, the runtime's poller, the queue of goroutines that may
// run. So it sees any shortage of processor time, ours and the machine's.
type LagProbe struct {
	// fixed
	in, out *os.File
	start   time.Time

	sent atomic.Int64 // when the byte under way was sent, ns since start; 0: none is
	last atomic.Int64 // how long the last one took, ns

	running sync.WaitGroup
}

// NewLagProbe measures until [LagProbe.Close].
func NewLagProbe() (*LagProbe, error) {
	in, out, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("measure lag: %w", err)
	}
	p := &LagProbe{in: in, out: out, start: time.Now()}
	p.running.Go(p.receive)
	return p, nil
}

// now is ns since start, from 1 on.
func (p *LagProbe) now() int64 { return int64(time.Since(p.start)) + 1 }

// receive takes the bytes until the pipe is closed.
func (p *LagProbe) receive() {
	var b [1]byte
	for {
		if _, err := p.in.Read(b[:]); err != nil {
			return
		}
		p.last.Store(p.now() - p.sent.Load())
		p.sent.Store(0)
	}
}

// Read returns the lag measured last, or the age of the byte under way where that is more already, and sends the next byte
// when none is. Only one goroutine may call it.
func (p *LagProbe) Read() time.Duration {
	lag, now := p.last.Load(), p.now()
	if sent := p.sent.Load(); sent != 0 {
		return time.Duration(max(lag, now-sent))
	}
	p.sent.Store(now)
	if _, err := p.out.Write([]byte{1}); err != nil { // closed: nobody is behind any more
		p.sent.Store(0)
	}
	return time.Duration(lag)
}

// Close ends the measuring.
func (p *LagProbe) Close() {
	_ = p.out.Close() // a pipe of our own: nothing can be lost
	p.running.Wait()
	_ = p.in.Close()
}
