package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"liveroom/loadtest/internal/client"
	"liveroom/loadtest/internal/process"
	"liveroom/loadtest/internal/report"
)

// bench is what a scenario works with: a server, readers, and a place for its figures.
type bench struct {
	o        *options
	fleet    *fleet // that this tool started, nil for none
	temp     string // directory of its data, "" for none
	dial     *client.Dialer
	tokens   *client.Minter
	readers  *client.Readers
	sampler  *sampler
	progress *progress
	result   *report.Result

	trials   int
	from, to usage   // around the measured part
	frames   float64 // read by all viewers while measured
	restore  func()  // undoes moreProcs; nil before

	mu       sync.Mutex // guards nextUser, and result.Connections while the scenario runs
	nextUser int
}

// perform opens a bench, runs the scenario on it and takes it down again. A result is returned with an error when the
// run ended early but something was measured.
func perform(ctx context.Context, o *options, stderr io.Writer) (*report.Result, error) {
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
		b.result.Note("%v: the figures are of what was done until then", errTimeout)
		err = errTimeout
	default:
		b.result.Note("interrupted: the figures are of what was done until then")
		err = nil
	}
	return b.result, err
}

// open gets the server, and everything else, ready.
func (b *bench) open(ctx context.Context) error {
	o := b.o
	if err := process.PinSelf(o.loadCPUs); err != nil {
		return err
	}
	b.restore = moreProcs(o.readers)
	if o.spawn > 0 {
		if err := b.start(ctx); err != nil {
			return err
		}
	}
	targets, err := client.ParseTargets(o.urls)
	if err != nil {
		return err
	}
	encrypted := false
	for _, t := range targets {
		encrypted = encrypted || t.Scheme == "https"
	}
	b.tokens = &client.Minter{Secret: []byte(o.secret), Prefix: fmt.Sprintf("lt-%s-", runID()), TTL: o.deadline() + time.Hour}
	b.dial = &client.Dialer{Targets: targets, Sources: o.sources, InsecureTLS: o.insecure, Compress: o.compress}
	if b.readers, err = client.NewReaders(o.readers, o.seed, encrypted); err != nil {
		return err
	}
	token, err := b.tokens.Admin()
	if err != nil {
		return err
	}
	b.sampler = newSampler(o.admins, o.pids, token)
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
		b.readers.Close()
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
func (b *bench) crowd(size int, stable bool) *client.Crowd {
	b.mu.Lock()
	first := b.nextUser
	b.nextUser += client.ComeBack * size // for those who come back, each time as somebody else
	b.mu.Unlock()
	c := &client.Crowd{Dial: b.dial, Tokens: b.tokens, Readers: b.readers, Rooms: b.roomNames(), Stable: stable, First: first,
		Timed:   max(1, size/b.o.timed),
		Workers: b.o.connectors, Failures: map[string]int{}, Nodes: map[string]int{}}
	return c
}

func (b *bench) roomNames() []string {
	base := b.o.room
	if base == "" {
		base = b.tokens.Prefix + "room"
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

// gather connects a crowd, and complains when hardly anybody comes in.
func (b *bench) gather(ctx context.Context, c *client.Crowd, n int) error {
	b.progress.line(fmt.Sprintf("connecting %d viewers", n))
	err := c.Fill(ctx, n, b.o.connectRate)
	b.connected(c, n)
	if err != nil {
		return err
	}
	if live := len(c.Live()); live < (n+1)/2 {
		closes, _ := b.readers.Tables()
		return fmt.Errorf("only %d of %d viewers came in (%s; close codes %v); when the server limits connects per address, "+
			"a lower -connect-rate or more -sources help", live, n, b.result.Connections, closes)
	}
	return nil
}

// audience runs f while -viewers are in their rooms.
func (b *bench) audience(ctx context.Context, f func(*client.Crowd) error) error {
	c := b.crowd(b.o.viewers, true)
	defer client.Dismiss(ctx, c)
	if err := b.gather(ctx, c, b.o.viewers); err != nil {
		return err
	}
	return f(c)
}

// timed is the processor time that the one node under test spends in f, in seconds.
func (b *bench) timed(f func() error) (float64, error) { return process.Timed(b.o.pids[0], f) }

// oneNode refuses a scenario that looks at one node's processor time when there is not exactly one.
func (b *bench) oneNode() error {
	if len(b.o.pids) != 1 {
		return fmt.Errorf("%s looks at the processor time of one node: give -spawn 1, or -pid with -url", b.o.scenario.name)
	}
	return nil
}

// moreProcs gives the Go scheduler a P for each reader and some more, even on one processor. A reader sits in
// epoll_wait with its P; on GOMAXPROCS(1) the speaker would wait up to 10 ms until the runtime takes that P away.
func moreProcs(readers int) (restore func()) {
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(max(before, readers+4))
	return func() { runtime.GOMAXPROCS(before) }
}

// band names a stretch of the time line, in seconds since the first attempt.
func (b *bench) band(name string, from, to float64) {
	b.result.Bands = append(b.result.Bands, report.Band{Name: name, From: from, To: to})
}

// freeRest is how long a server may take to give memory back after it was told to.
const freeRest = 2 * time.Second

// runID is different for each run, so that nobody meets yesterday's buckets.
func runID() string { return fmt.Sprintf("%x", time.Now().UnixNano()/1e6&0xffffffff) }

var (
	errNobody  = errors.New("nobody is in the room to send")
	errTimeout = errors.New("the run took longer than -timeout")
)

// progress shows one line about what is going on: in place on a terminal, else a line each time. Safe for concurrent use.
type progress struct {
	mu           sync.Mutex
	out          io.Writer // guarded by mu
	clear, after string    // around a line
}

func newProgress(out io.Writer, quiet bool) *progress {
	p := &progress{out: out, after: "\n"}
	if f, ok := out.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			p.clear, p.after = "\r\x1b[K", ""
		}
	}
	if quiet {
		p.out = io.Discard
	}
	return p
}

// line replaces what is shown.
func (p *progress) line(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprint(p.out, p.clear, s, p.after)
}

// end clears the line.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprint(p.out, p.clear)
}
