package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"liveroom/protocol"
)

// rollingOptions is everything the command rolling can be told. The flags' texts document the fields.
type rollingOptions struct {
	nodes, viewers, rooms int
	connectRate           float64
	drain, settle         time.Duration
	before                string
	serverOptions         // of which only what concerns starting nodes is used
}

// rollingAbout is the command in a line of the help.
const rollingAbout = "restarts all nodes one after the other under danmaku and gifts, with viewers who come back: what each of them missed"

// What a rolling restart may cost.
const danmakuMissedMost = 0.01 // of a viewer's danmaku, without a word

func parseRolling(args []string, usage io.Writer) (*rollingOptions, error) {
	o := &rollingOptions{}
	set := flag.NewFlagSet("loadtest rolling", flag.ContinueOnError)
	set.IntVar(&o.nodes, "nodes", 3, "how many")
	set.IntVar(&o.viewers, "viewers", 10_000, "over all rooms")
	set.IntVar(&o.rooms, "rooms", 100, "in each a danmaku a second, and a gift every five")
	set.Float64Var(&o.connectRate, "connect-rate", 1000, "viewers who come per second at the beginning")
	set.DurationVar(&o.drain, "drain", 10*time.Second, "over which a node sends its viewers away")
	set.DurationVar(&o.settle, "settle", 5*time.Second, "between a node's return and the next one's end")
	set.StringVar(&o.before, "before", "", "the liveserver that runs before the restart, for an upgrade; empty: the same")
	set.StringVar(&o.server, "server", "", "the liveserver to start; empty: build it from this module")
	set.StringVar(&o.serverCPUs, "server-cpus", "", "processors of the nodes, as for taskset; empty: all")
	set.StringVar(&o.serverLog, "server-log", "", "file for what the nodes write; empty: only shown when one ends")
	if err := parseFlags(set, rollingAbout, args, usage); err != nil {
		return nil, err
	}
	o.spawn = o.nodes
	if o.nodes < 2 || o.rooms < 1 || o.viewers < 2*o.rooms || o.connectRate <= 0 {
		return nil, errors.New("-nodes must be 2 or more, -rooms 1 or more, -viewers twice that, -connect-rate above 0")
	}
	return o, nil
}

func rolling(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseRolling(args, stdout)
	if err != nil {
		return badFlags("rolling", err, stderr)
	}
	good, err := o.run(ctx, stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "loadtest rolling: %v\n", err)
	}
	if err != nil || !good {
		return exitMissed
	}
	return exitOK
}

func (o *rollingOptions) run(ctx context.Context, stdout, stderr io.Writer) (good bool, err error) {
	dir, err := os.MkdirTemp("", "loadtest-rolling-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	p := newProgress(stderr, false)
	defer p.end()
	f, err := newFleet(ctx, dir, &o.serverOptions, p)
	if f != nil {
		defer f.stop()
	}
	if err != nil {
		return false, err
	}
	rules := dir + "/rules.yaml"
	if err := os.WriteFile(rules, benchRules, 0o600); err != nil {
		return false, err
	}
	f.extra = []string{"-limits-file", rules, "-drain-timeout", o.drain.String(), "-log-level", "warn", "-rooms-create-rate", "0"}
	after := f.binary
	if o.before != "" {
		f.binary = o.before
	}
	for i := range o.nodes {
		if _, err := f.launch(ctx, nodeName(i), "-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0"); err != nil {
			return false, err
		}
	}
	f.binary = after

	r := &rollingRun{o: o, fleet: f, progress: p, nodes: slices.Clone(f.nodes)}
	balancing, stopBalancing := context.WithCancel(ctx)
	var beside sync.WaitGroup
	r.balance()
	beside.Go(func() { r.keepBalancing(balancing) })
	defer beside.Wait()
	defer stopBalancing()
	if err := r.play(ctx); err != nil {
		return false, err
	}
	p.end()
	return r.tell(stdout), nil
}

// rollingRun is a rolling restart at work.
type rollingRun struct {
	o        *rollingOptions
	fleet    *fleet
	progress *progress
	figures  rollingFigures
	rooms    []*busyRoom
	viewers  []*returning
	took     []time.Duration // of each restart
	end      int64           // the last instant of which all must have arrived, Unix milliseconds

	mu    sync.Mutex
	nodes []*node  // guarded by mu
	ready []string // guarded by mu
}

// balanceEvery is how often each node is asked whether it wants traffic, as balancers do.
const balanceEvery = time.Second

func (r *rollingRun) keepBalancing(ctx context.Context) {
	tick := time.NewTicker(balanceEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.balance()
		case <-ctx.Done():
			return
		}
	}
}

// balance asks the nodes.
func (r *rollingRun) balance() {
	c := &http.Client{Timeout: balanceEvery / 2}
	defer c.CloseIdleConnections()
	r.mu.Lock()
	nodes := slices.Clone(r.nodes)
	r.mu.Unlock()
	var ready []string
	for _, n := range nodes {
		res, err := c.Get(n.admin + "/readyz")
		if err != nil {
			continue
		}
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			ready = append(ready, n.url)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(ready) > 0 {
		r.ready = ready
	}
}

// offer is a node that wanted traffic when it was asked last.
func (r *rollingRun) offer() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ready[rand.N(len(r.ready))]
}

// play lets viewers come, speakers speak, and the nodes go and come back, until all has arrived.
func (r *rollingRun) play(ctx context.Context) error {
	for i := range r.o.rooms {
		r.rooms = append(r.rooms, &busyRoom{name: fmt.Sprintf("rolling-%d", i), danmaku: map[string]int64{}, waits: map[string]chan answer{}})
	}
	watching, leave := context.WithCancel(ctx)
	speaking, hush := context.WithCancel(ctx)
	var viewers, speakers sync.WaitGroup
	defer func() { hush(); speakers.Wait(); leave(); viewers.Wait() }()
	pace := time.NewTicker(time.Duration(float64(time.Second) / r.o.connectRate))
	defer pace.Stop()
	for i := range r.o.viewers {
		v := &returning{room: r.rooms[i%len(r.rooms)], offers: r.offer, figures: &r.figures, speaks: i < len(r.rooms), left: time.Now(), seen: map[string]int{}}
		r.viewers = append(r.viewers, v)
		viewers.Go(func() { v.run(watching) })
		select {
		case <-pace.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := r.await(ctx, "viewers"); err != nil {
		return err
	}
	for i, room := range r.rooms {
		speakers.Go(func() { r.speak(speaking, room, r.viewers[i]) })
	}
	if err := r.restartAll(ctx); err != nil {
		return err
	}
	r.progress.line("everybody has left once; the last danmaku arrive")
	hush()
	speakers.Wait()
	r.end = time.Now().UnixMilli()
	if err := r.await(ctx, "viewers to be back"); err != nil {
		return err
	}
	return pause(ctx, 2*time.Second)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await waits until all viewers have a socket.
func (r *rollingRun) await(ctx context.Context, what string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for int(r.figures.here.Load()) < len(r.viewers) {
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for %s: %d of %d are here: %w", what, r.figures.here.Load(), len(r.viewers), err)
		}
	}
	return nil
}

// speak lets a room's speaker say something each second until ctx ends; what it waits for is waited for.
func (r *rollingRun) speak(ctx context.Context, room *busyRoom, by *returning) {
	if pause(ctx, rand.N(time.Second)) != nil {
		return
	}
	for n := 0; ; n++ {
		room.say(context.WithoutCancel(ctx), by, protocol.OpDanmaku)
		if n%5 == 0 {
			room.say(context.WithoutCancel(ctx), by, protocol.OpGift)
		}
		if pause(ctx, time.Second) != nil {
			return
		}
	}
}

// restartAll ends one node after the other in order, and starts it again at its address.
func (r *rollingRun) restartAll(ctx context.Context) error {
	for i := range r.o.nodes {
		if err := pause(ctx, r.o.settle); err != nil {
			return err
		}
		r.mu.Lock()
		old := r.nodes[i]
		r.mu.Unlock()
		r.progress.line(fmt.Sprintf("%s is told to go", old.Name))
		began := time.Now()
		old.Stop()
		if old.Failed() {
			return fmt.Errorf("%s ended badly: %s (%s)", old.Name, old.Ended(), old.Log.Last())
		}
		host := func(url string) string { return strings.TrimPrefix(url, "http://") }
		n, err := r.fleet.launch(ctx, old.Name, "-addr", host(old.url), "-admin-addr", host(old.admin))
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.nodes[i] = n
		r.mu.Unlock()
		r.took = append(r.took, time.Since(began))
	}
	return nil
}

// rollingFigures are counted by all viewers.
type rollingFigures struct {
	here, unreadable, refused atomic.Int64

	mu    sync.Mutex
	ends  map[string]int  // guarded by mu
	away  []time.Duration // of each return; guarded by mu
	joins map[int64]int   // returns by second; guarded by mu
}

func (f *rollingFigures) end(how string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ends == nil {
		f.ends = map[string]int{}
	}
	f.ends[how]++
}

// joined counts a welcome.
func (f *rollingFigures) joined(first bool) {
	f.here.Add(1)
	if first {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.joins == nil {
		f.joins = map[int64]int{}
	}
	f.joins[time.Now().Unix()]++
}

func (f *rollingFigures) back(away time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = append(f.away, away)
}

// tell compares what each viewer saw with what was admitted. The viewers have ended.
func (r *rollingRun) tell(w io.Writer) (good bool) {
	var given, danmaku, unannounced, announced, twice, holes, short, worst int64
	for _, room := range r.rooms {
		given += room.given
		danmaku += int64(len(room.danmaku))
	}
	owed := int64(0)
	for _, v := range r.viewers {
		lost, said := v.lost(r.end)
		unannounced, announced, worst = unannounced+lost, announced+said, max(worst, lost)
		owed += int64(len(v.room.danmaku))
		holes += v.holes
		if v.gift < v.room.gifts {
			short++
		}
		for _, n := range v.seen {
			twice += int64(n - 1)
		}
	}
	f := &r.figures
	slices.Sort(f.away)
	at := func(q float64) time.Duration {
		if len(f.away) == 0 {
			return 0
		}
		return f.away[min(len(f.away)-1, int(q*float64(len(f.away))))].Round(time.Millisecond)
	}
	most := 0
	for _, n := range f.joins {
		most = max(most, n)
	}
	fmt.Fprintf(w, "%d nodes were restarted one after the other under %d viewers in %d rooms; each took", r.o.nodes, len(r.viewers), len(r.rooms))
	for _, d := range r.took {
		fmt.Fprintf(w, " %v", d.Round(100*time.Millisecond))
	}
	fmt.Fprintf(w, "\nsockets ended:")
	for _, how := range slices.Sorted(maps.Keys(f.ends)) {
		fmt.Fprintf(w, " %s %d", how, f.ends[how])
	}
	fmt.Fprintf(w, "; %d returns, away for %v (median), %v (99 %%), %v (longest); at most %d returns in a second\n", len(f.away), at(.5), at(.99), at(1), most)
	fmt.Fprintf(w, "gifts: %d acknowledged; %d viewers miss the end of them, %d holes\n", given, short, holes)
	fmt.Fprintf(w, "danmaku: %d admitted, %d owed to viewers; %d missed without a word (%.4f %%, at most %d of one viewer), %d missed and told, %d seen again; %d refused\n",
		danmaku, owed, unannounced, 100*float64(unannounced)/float64(max(1, owed)), worst, announced, twice, f.refused.Load())
	good = short == 0 && holes == 0 && float64(unannounced) <= danmakuMissedMost*float64(owed) && f.unreadable.Load() == 0 && given > 0
	verdict := "Nobody misses a gift, and danmaku are within the bound."
	if !good {
		verdict = "MISSED: each viewer must have all gifts, and 99 % of the danmaku or word of those it has not."
	}
	fmt.Fprintln(w, verdict)
	return good
}
