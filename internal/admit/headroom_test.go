package admit

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"
)

func TestContainerLimit(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		files []string
		want  uint64
	}{
		{[]string{file("v2", "1073741824\n")}, 1 << 30},
		{[]string{file("max", "max\n"), file("v2b", "1024")}, 0},
		{[]string{filepath.Join(dir, "none"), file("v1", "2048\n")}, 2048},
		{[]string{file("v1max", "9223372036854771712\n")}, 0},
		{[]string{filepath.Join(dir, "none")}, 0},
	} {
		if got := containerLimit(c.files...); got != c.want {
			t.Errorf("%v: %d, want %d", c.files, got, c.want)
		}
	}
}

// A node that holds more than three quarters of its limit turns newcomers away, and tells the runtime the limit.
func TestHeadroom(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	h := NewHeadroom(1 << 40)
	if debug.SetMemoryLimit(-1) != 1<<40 {
		t.Error("the runtime was not told")
	}
	if _, ok := h.Ready(); !ok {
		t.Errorf("turned away with %d bytes of a terabyte", h.held)
	}
	if h.held == 0 {
		t.Error("a process that holds nothing")
	}
	h.limit = h.held
	if retry, ok := h.Ready(); ok || retry <= 0 {
		t.Error("let in at the limit")
	}
	debug.SetMemoryLimit(math.MaxInt64 - 1)
	if h := NewHeadroom(0); h.limit != math.MaxInt64-1 {
		t.Errorf("GOMEMLIMIT is not heard: %d", h.limit)
	}
}

// The probe measures what it sends itself, says how old what is under way is, and ends.
func TestLagProbe(t *testing.T) {
	p, err := NewLagProbe()
	if err != nil {
		t.Fatal(err)
	}
	for p.last.Load() == 0 { // the test's own time-out is the bound
		p.Read()
	}
	if lag := p.Read(); lag <= 0 {
		t.Errorf("lag is %v", lag)
	}
	p.Close()
	p.last.Store(0)
	p.sent.Store(p.now() - int64(time.Second))
	if lag := p.Read(); lag < time.Second {
		t.Errorf("a byte is under way for a second, the lag is %v", lag)
	}
	p.sent.Store(0)
	p.Read()
	if p.sent.Load() != 0 {
		t.Error("waits for a byte that could not be sent")
	}
}
