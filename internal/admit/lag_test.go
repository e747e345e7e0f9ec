package admit

import (
	"testing"
	"time"
)

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
