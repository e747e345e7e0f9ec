package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"liveroom/loadtest/internal/client"
	"liveroom/protocol"
)

// rolling asks what viewers who come back, as pages do, miss of danmaku and gifts while all nodes are restarted one after the other.
func rolling(ctx context.Context, b *bench) error {
	o := b.o
	if b.fleet == nil || o.spawn < 2 || o.viewers < 2*o.rooms {
		return errors.New("rolling restarts nodes of its own, in rooms with a speaker and somebody who listens: give -spawn 2 or more, and -viewers twice -rooms")
	}
	r := &rollingRun{bench: b, balance: balancer{nodes: slices.Clone(b.fleet.nodes)}, figures: rollingFigures{joins: map[int64]int{}, ends: b.result.Closes}}
	r.balance.ask()
	balancing, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { r.balance.run(balancing) })
	defer beside.Wait()
	defer stop()
	if err := b.around(ctx, func() error { return r.play(ctx) }); err != nil {
		return err
	}
	return r.tell()
}

// rollingRun is a rolling restart at work.
type rollingRun struct {
	*bench
	balance balancer
	figures rollingFigures
	rooms   []*busyRoom
	viewers []*returning
	end     int64 // the last instant of which all must have arrived, Unix milliseconds
}

// balancer knows which nodes want traffic, as those do that stand in front of nodes.
type balancer struct {
	mu    sync.Mutex
	nodes []*node  // guarded by mu
	ready []string // guarded by mu
}

// balanceEvery is how often each node is asked whether it wants traffic, as balancers do.
const balanceEvery = time.Second

func (b *balancer) run(ctx context.Context) {
	for client.WaitFor(ctx, balanceEvery) == nil {
		b.ask()
	}
}

// ask asks the nodes.
func (b *balancer) ask() {
	c := &http.Client{Timeout: balanceEvery / 2}
	defer c.CloseIdleConnections()
	b.mu.Lock()
	nodes := slices.Clone(b.nodes)
	b.mu.Unlock()
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
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(ready) > 0 {
		b.ready = ready
	}
}

// offer is a node that wanted traffic when it was asked last.
func (b *balancer) offer() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready[rand.N(len(b.ready))]
}

// replace puts n in the place of the i-th.
func (b *balancer) replace(i int, n *node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes[i] = n
}

// play lets viewers come, speakers speak, and the nodes go and come back, until all has arrived.
func (r *rollingRun) play(ctx context.Context) error {
	for _, name := range r.roomNames() {
		r.rooms = append(r.rooms, &busyRoom{name: name, danmaku: map[string]int64{}, waits: map[string]chan answer{}})
	}
	watching, leave := context.WithCancel(ctx)
	speaking, hush := context.WithCancel(ctx)
	var viewers, speakers sync.WaitGroup
	defer func() { hush(); speakers.Wait(); leave(); viewers.Wait() }()
	start := time.Now()
	for i := range r.o.viewers {
		if err := client.WaitUntil(ctx, start.Add(time.Duration(float64(i)/r.o.connectRate*1e9))); err != nil {
			return err
		}
		v := &returning{room: r.rooms[i%len(r.rooms)], offers: r.balance.offer, figures: &r.figures, speaks: i < len(r.rooms), left: time.Now(), seen: map[string]int{}}
		r.viewers = append(r.viewers, v)
		viewers.Go(func() { v.run(watching) })
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
	err := r.await(ctx, "viewers to be back")
	r.result.Connections.Wanted, r.result.Connections.Joined = len(r.viewers), r.figures.here.Load()
	if err != nil {
		return err
	}
	return client.WaitFor(ctx, 2*time.Second)
}

// await waits until all viewers have a socket.
func (r *rollingRun) await(ctx context.Context, what string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for int(r.figures.here.Load()) < len(r.viewers) {
		if err := client.WaitFor(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for %s: %d of %d are here: %w", what, r.figures.here.Load(), len(r.viewers), err)
		}
	}
	return nil
}

// speak lets a room's speaker say something each second until ctx ends; what it waits for is waited for.
func (r *rollingRun) speak(ctx context.Context, room *busyRoom, by *returning) {
	if client.WaitFor(ctx, rand.N(time.Second)) != nil {
		return
	}
	for n := 0; ; n++ {
		room.say(context.WithoutCancel(ctx), by, protocol.OpDanmaku)
		if n%5 == 0 {
			room.say(context.WithoutCancel(ctx), by, protocol.OpGift)
		}
		if client.WaitFor(ctx, time.Second) != nil {
			return
		}
	}
}

// restartAll ends one node after the other in order, and starts it again at its address.
func (r *rollingRun) restartAll(ctx context.Context) error {
	for i, old := range slices.Clone(r.fleet.nodes) {
		if err := client.WaitFor(ctx, r.o.settle); err != nil {
			return err
		}
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
		r.sampler.watch(n.admin, n.Cmd.Process.Pid, false)
		r.balance.replace(i, n)
		r.result.Note("%s went and came back in %v", n.Name, time.Since(began).Round(100*time.Millisecond))
	}
	return nil
}

// rollingFigures are counted by all viewers.
type rollingFigures struct {
	here, unreadable, refused atomic.Int64

	mu    sync.Mutex
	ends  map[string]int64 // by close code, 1006 where there was none; guarded by mu
	away  client.Latencies // guarded by mu
	joins map[int64]int    // returns by second; guarded by mu
}

func (f *rollingFigures) end(how string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ends[how]++
}

// back counts a welcome of somebody who had one before.
func (f *rollingFigures) back(away time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away.Record(client.Away, away)
	f.joins[time.Now().Unix()]++
}

// tell compares what each viewer saw with what was admitted. The viewers have ended.
func (r *rollingRun) tell() error {
	var given, danmaku, owed, unannounced, announced, twice, holes, short, worst, most int64
	for _, room := range r.rooms {
		given += room.given
		danmaku += int64(len(room.danmaku))
	}
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
	f, v := &r.figures, r.result.Values
	for _, n := range f.joins {
		most = max(most, int64(n))
	}
	r.result.AddLatencies(&f.away)
	v["unannounced"], v["gift_loss"], v["unreadable"] = float64(unannounced)/float64(max(1, owed)), float64(short+holes), float64(f.unreadable.Load())
	r.result.Note("at most %d viewers came back in a second", most)
	r.result.Note("gifts: %d acknowledged; %d viewers miss the end of them, %d holes", given, short, holes)
	r.result.Note("danmaku: %d admitted, %d owed to viewers; %d missed without a word, at most %d of one viewer, %d missed and told, %d seen again; %d refused",
		danmaku, owed, unannounced, worst, announced, twice, f.refused.Load())
	if given == 0 {
		return errors.New("no gift was acknowledged")
	}
	return nil
}
