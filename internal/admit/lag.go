package admit

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

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
