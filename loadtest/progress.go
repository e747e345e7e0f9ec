package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows one line about what is going on: in place on a terminal, else a line each time. Safe for concurrent use.
type progress struct {
	mu    sync.Mutex
	out   io.Writer                // guarded by mu
	bar   *progressbar.ProgressBar // nil when out is no terminal
	quiet bool
}

func newProgress(out io.Writer, quiet bool) *progress {
	p := &progress{out: out, quiet: quiet}
	if f, ok := out.(*os.File); ok && !quiet {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			p.bar = progressbar.NewOptions(-1, progressbar.OptionSetWriter(out), progressbar.OptionSpinnerType(14),
				progressbar.OptionSetElapsedTime(true), progressbar.OptionClearOnFinish())
		}
	}
	return p
}

// line replaces what is shown.
func (p *progress) line(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.quiet:
	case p.bar != nil:
		p.bar.Describe(s)
		_ = p.bar.Add(1) // a terminal that went away is no reason to end a run
	default:
		fmt.Fprintln(p.out, s)
	}
}

// watch shows what say returns, again and again, until the function it returns is called.
func (p *progress) watch(every time.Duration, say func() string) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.line(say())
			case <-done:
				return
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// end clears the line.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Finish() // see line
	}
}
