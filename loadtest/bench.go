package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// bench is what a scenario works with: a server, readers, and a place for its figures.
type bench struct {
	o        *options
	fleet    *fleet // that this tool started, nil for none
	temp     string // directory of its data, "" for none
	dial     *dialer
	tokens   *minter
	readers  *readers
	sampler  *sampler
	progress *progress
	result   *Result

	trials  int
	restore func() // undoes moreProcs; nil before

	mu       sync.Mutex // guards nextUser, and result.Connections while the scenario runs
	nextUser int
}

// perform opens a bench, runs the scenario on it and takes it down again. A result is returned with an error when the
// run ended early but something was measured.
func perform(ctx context.Context, o *options, stderr io.Writer) (*Result, error) {
	b := &bench{o: o, result: newResult(o), progress: newProgress(stderr, o.quiet)}
	defer b.close()
	if err := b.open(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	err := o.scenario.run(ctx, b)
	b.finish(began)
	switch {
	case err == nil:
	case ctx.Err() == nil:
		return nil, err
	case errors.Is(context.Cause(ctx), errTimeout):
		b.result.note("%v: the figures are of what was done until then", errTimeout)
		err = errTimeout
	default:
		b.result.note("interrupted: the figures are of what was done until then")
		err = nil
	}
	return b.result, err
}

// open gets the server, and everything else, ready.
func (b *bench) open(ctx context.Context) error {
	o := b.o
	if err := pinSelf(o.loadCPUs); err != nil {
		return err
	}
	b.restore = moreProcs(o.readers)
	if o.spawn > 0 {
		if err := b.start(ctx); err != nil {
			return err
		}
	}
	targets, err := parseTargets(o.urls)
	if err != nil {
		return err
	}
	encrypted := false
	for _, t := range targets {
		encrypted = encrypted || t.Scheme == "https"
	}
	b.tokens = &minter{secret: []byte(o.secret), prefix: fmt.Sprintf("lt-%s-", runID()), ttl: o.deadline() + time.Hour}
	b.dial = &dialer{targets: targets, sources: o.sources, insecureTLS: o.insecure, compress: o.compress}
	if b.readers, err = newReaders(o.readers, o.seed, encrypted); err != nil {
		return err
	}
	token, err := b.tokens.admin()
	if err != nil {
		return err
	}
	b.sampler = newSampler(o.admins, o.pids, b.redisClient(), token)
	b.result.sampling = b.sampler.began
	b.result.Environment = environment(ctx, b.sampler)
	return b.sampler.start(ctx)
}

// close takes down what open put up, in any state.
func (b *bench) close() {
	b.progress.end()
	if b.sampler != nil {
		b.sampler.stop()
	}
	if b.readers != nil {
		b.readers.close()
	}
	if b.fleet != nil {
		b.fleet.stop()
	}
	if b.temp != "" {
		_ = os.RemoveAll(b.temp) // it lies where the system clears up
	}
	if b.restore != nil {
		b.restore()
	}
}

// crowd makes an empty set of viewers in the scenario's rooms.
func (b *bench) crowd(size int, stable bool) *crowd {
	b.mu.Lock()
	first := b.nextUser
	b.nextUser += comeBack * size // for those who come back, each time as somebody else
	b.mu.Unlock()
	c := &crowd{dial: b.dial, tokens: b.tokens, readers: b.readers, rooms: b.roomNames(), stable: stable, first: first,
		timed:   max(1, size/b.o.timed),
		workers: b.o.connectors, failures: map[string]int{}, nodes: map[string]int{}}
	return c
}

// connected adds how a crowd came in to the result.
func (b *bench) connected(c *crowd, wanted int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.result.connected(c, wanted)
}

func (b *bench) roomNames() []string {
	base := b.o.room
	if base == "" {
		base = b.tokens.prefix + "room"
	}
	if b.o.rooms == 1 {
		return []string{base}
	}
	var out []string
	for i := range b.o.rooms {
		out = append(out, fmt.Sprintf("%s-%d", base, i+1))
	}
	return out
}

// gather connects a crowd, with progress, and complains when hardly anybody comes in.
func (b *bench) gather(ctx context.Context, c *crowd, n int) error {
	stop := b.progress.watch(time.Second, func() string {
		return fmt.Sprintf("connecting: %d of %d joined, %d failed", c.joined.Load(), n, c.failed.Load())
	})
	err := c.fill(ctx, n, b.o.connectRate)
	stop()
	b.connected(c, n)
	if err != nil {
		return err
	}
	if live := len(c.live()); live < (n+1)/2 {
		closes, _ := b.readers.tables()
		return fmt.Errorf("only %d of %d viewers came in (%s; close codes %v); when the server limits connects per address, "+
			"a lower -connect-rate or more -sources help", live, n, b.result.Connections, closes)
	}
	return nil
}

// audience runs f while -viewers are in their rooms.
func (b *bench) audience(ctx context.Context, f func(*crowd) error) error {
	c := b.crowd(b.o.viewers, true)
	defer dismiss(ctx, c)
	if err := b.gather(ctx, c, b.o.viewers); err != nil {
		return err
	}
	return f(c)
}

// freeRest is how long a server may take to give memory back after it was told to.
const freeRest = 2 * time.Second

// finish adds what belongs to the whole run.
func (b *bench) finish(began time.Time) {
	r := b.result
	r.Seconds = time.Since(began).Seconds()
	r.Server = b.sampler.series()
	r.count(b.readers)
	r.usage(b.sampler)
}

// runID is different for each run, so that nobody meets yesterday's buckets.
func runID() string { return fmt.Sprintf("%x", time.Now().UnixNano()/1e6&0xffffffff) }

var (
	errNobody  = errors.New("nobody is in the room to send")
	errTimeout = errors.New("the run took longer than -timeout")
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
