package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"liveroom/internal/redistest"
	"liveroom/limit"
	"liveroom/limit/cluster"
	"liveroom/limit/redisstore"
)

const unhurried = time.Second

// fleet is some nodes in one process, each with a Gate, a Cluster and a Store of
// its own, over one real Redis. Their common clock makes instants comparable.
type fleet struct {
	t     *testing.T
	clock limit.Clock
	nodes []*machine
}

// machine is a node. Its link to Redis is its own proxy.
type machine struct {
	name    string
	gate    *limit.Gate
	cluster *cluster.Cluster
	store   *redisstore.Store
	proxy   *redistest.Proxy
	fleet   *fleet
	dead    atomic.Bool
	cut     atomic.Bool

	mu    sync.Mutex
	rooms map[string]*limit.Subject
	users map[string]*limit.Subject
	took  []limit.Instant
}

// Budget is a second here, where time is not what the test is about: a busy
// machine answers late, and then nodes go on by their shares as they should.
func newFleet(t *testing.T, n int, server *redistest.Server, budget time.Duration, rules string) *fleet {
	t.Helper()
	return newFleetOf(t, n, server, cluster.Config{Budget: budget}, rules)
}

// newFleetOf says of a node what is not the fleet's to say.
func newFleetOf(t *testing.T, n int, server *redistest.Server, cfg cluster.Config, rules string) *fleet {
	t.Helper()
	spec, err := limit.Parse([]byte("rules:\n" + rules))
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, clock: limit.NewClock()}
	for i := range n { // all of them, before one looks for its peers
		m := &machine{name: fmt.Sprint("n", i), fleet: f, rooms: map[string]*limit.Subject{}, users: map[string]*limit.Subject{}}
		f.nodes = append(f.nodes, m)
	}
	for _, m := range f.nodes {
		m.proxy = redistest.NewProxy(t, server.Addr)
		if m.store, err = redisstore.Open(redisstore.Config{URL: m.proxy.URL(), Answer: cfg.Budget}); err != nil {
			t.Fatal(err)
		}
		m.gate = limit.NewGate(compiled, f.clock)
		cfg.Store, cfg.Node, cfg.Peers, cfg.Clock = m.store, m.name, m, f.clock
		m.cluster, err = cluster.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		m.gate.Share(m.cluster)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		for _, m := range f.nodes {
			_ = m.cluster.Close(ctx)
			_ = m.store.Close()
		}
	})
	return f
}

// Count, Reachable and Recall make a machine its own Cluster's Peers.
func (m *machine) Count() int {
	n := 0
	for _, other := range m.fleet.nodes {
		if !other.dead.Load() {
			n++
		}
	}
	return n
}

func (m *machine) Reachable() bool { return !m.cut.Load() }

func (m *machine) Recall(ctx context.Context, name, claim string) error {
	for _, other := range m.fleet.nodes {
		if other.name == name && !other.dead.Load() {
			return other.cluster.Recalled(ctx, claim)
		}
	}
	return cluster.ErrNoNode
}

// say is one danmaku of a user in a room on this node.
func (m *machine) say(user, room string) limit.Decision { return m.do(limit.Danmaku, user, room) }

func (m *machine) do(a limit.Action, user, room string) limit.Decision {
	m.mu.Lock()
	u, r := m.users[user], m.rooms[room]
	if u == nil {
		u = &limit.Subject{Scope: limit.ScopeUser}
		m.users[user] = u
	}
	if r == nil {
		r = &limit.Subject{Scope: limit.ScopeRoom}
		m.rooms[room] = r
	}
	m.mu.Unlock()
	d := m.gate.Decide(m.gate.Now(), &limit.Request{Action: a, User: user, Room: room, Audience: 10}, u, r)
	if d.Verdict == limit.Allow {
		m.mu.Lock()
		m.took = append(m.took, d.At)
		m.mu.Unlock()
	}
	return d
}

// flood sends from every living node, a burst each 2 ms, until the time is over.
func (f *fleet) flood(d time.Duration, perSecond int) {
	var all sync.WaitGroup
	for i, m := range f.nodes {
		all.Go(func() {
			tick := time.NewTicker(2 * time.Millisecond)
			defer tick.Stop()
			began := time.Now()
			for sent := 0; time.Since(began) < d && !m.dead.Load(); <-tick.C {
				for want := int(time.Since(began).Seconds() * float64(perSecond)); sent < want; sent++ {
					m.say(fmt.Sprintf("u%d-%d", i, sent%50), "hot")
				}
			}
		})
	}
	all.Wait()
}

// degraded is how long the nodes went on by their shares, altogether.
func (f *fleet) degraded() (sum time.Duration) {
	for _, m := range f.nodes {
		sum += m.cluster.Stats().Degraded
	}
	return sum
}

// tolerated is what a bound may be exceeded by: nothing, but what nodes that went
// on by their shares meanwhile may add: of each such outage a share of the burst,
// and of the rate for as long as it lasted. On a machine that is not overrun no
// node does.
func (f *fleet) tolerated(burst, rate int64) float64 {
	sum := 0.0
	for _, m := range f.nodes {
		if away := m.cluster.Stats().Degraded; away > 0 {
			sum += (float64(burst) + float64(rate)*away.Seconds()) / float64(len(f.nodes))
		}
	}
	return sum
}

// excess is how much more than burst + rate*w was admitted in the worst window.
func (f *fleet) excess(burst, rate int64) (admitted int, excess float64) {
	var all []limit.Instant
	for _, m := range f.nodes {
		m.mu.Lock()
		all = append(all, m.took...)
		m.mu.Unlock()
	}
	slices.Sort(all)
	// The worst window that ends with admission i starts with the one that
	// minimises i - rate*t.
	low := 0.0
	for i, at := range all {
		here := float64(i) - float64(rate)*time.Duration(at).Seconds()
		if i == 0 || here < low {
			low = here
		}
		excess = max(excess, here-low+1-float64(burst))
	}
	return len(all), excess
}

// calls counts the scripts that a server has run.
func calls(t *testing.T, server *redistest.Server, command string) int {
	t.Helper()
	text, err := server.Client().Info(t.Context(), "commandstats").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
			_, _ = fmt.Sscan(strings.ReplaceAll(rest, ",", " "), &n)
		}
	}
	return n
}

const hotRoom = `  - {name: hot, action: danmaku, scope: room, rate: 500, burst: 500, cluster: true}
`

// TestQuotaOverNodes floods one room from three nodes over a real Redis.
func TestQuotaOverNodes(t *testing.T) {
	server := redistest.Start(t)
	f := newFleet(t, 3, server, unhurried, hotRoom)
	before, began := calls(t, server, "evalsha"), time.Now()
	f.flood(4*time.Second, 600)
	took := time.Since(began)
	draws := float64(calls(t, server, "evalsha")-before) / took.Seconds()
	admitted, excess := f.excess(500, 500)
	t.Logf("admitted %d in %s, %.1f above the bound at worst, %.0f draws/s, degraded for %s", admitted, took, excess, draws, f.degraded())
	if excess > f.tolerated(500, 500) {
		t.Errorf("%.1f above burst + rate*w", excess)
	}
	if draws > 160 {
		t.Errorf("%.0f draws/s", draws)
	}
	if most := 500 + 500*took.Seconds(); float64(admitted) < 0.9*most && took < 5*time.Second {
		t.Errorf("admitted %d of %.0f", admitted, most) // a flood that took longer was none
	}
}

// TestQuotaThroughFaults floods one room while Redis forgets scripts, replies are
// lost, requests are doubled and connections are cut: what holds without faults
// holds with them, but for the local shares while a breaker is open.
func TestQuotaThroughFaults(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, 3, server, unhurried, hotRoom)
	stop := make(chan struct{})
	var faults sync.WaitGroup
	faults.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(150 * time.Millisecond):
			}
			m := f.nodes[i%3]
			switch i % 4 {
			case 0:
				server.Do("SCRIPT", "FLUSH")
			case 1:
				m.proxy.LoseReplies(1)
			case 2:
				m.proxy.Twice(i%8 == 2)
			case 3:
				m.proxy.Cut()
			}
		}
	})
	f.flood(4*time.Second, 600)
	close(stop)
	faults.Wait()
	admitted, excess := f.excess(500, 500)
	t.Logf("admitted %d, %.1f above the bound at worst, degraded for %s", admitted, excess, f.degraded())
	if excess > f.tolerated(500, 500) {
		t.Errorf("%.1f above burst + rate*w", excess)
	}
}

// TestQuotaThroughOutage kills Redis under the flood and starts it empty: nodes
// go on by their shares, nothing bursts when it is back, and each decision is
// answered in time.
func TestQuotaThroughOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, 3, server, unhurried, hotRoom)
	var outage sync.WaitGroup
	outage.Go(func() {
		<-time.After(1500 * time.Millisecond)
		server.Kill()
		<-time.After(1500 * time.Millisecond)
		for _, m := range f.nodes {
			if _, reason, yes := m.cluster.Degraded(); !yes || reason == "" {
				t.Errorf("%s does not say that it is degraded", m.name)
			}
		}
		server.Run()
	})
	f.flood(6*time.Second, 600)
	outage.Wait()
	admitted, excess := f.excess(500, 500)
	t.Logf("admitted %d, %.1f above the bound at worst, degraded for %s", admitted, excess, f.degraded())
	if excess > f.tolerated(500, 500) {
		t.Errorf("%.1f above burst + rate*w", excess)
	}
	if admitted < 2000 {
		t.Errorf("only %d admitted", admitted)
	}
}

// TestHangIsBounded is CASES 18: while Redis answers nothing each decision comes
// within the budget, by the rule's policy.
func TestHangIsBounded(t *testing.T) {
	server := redistest.Start(t)
	f := newFleet(t, 1, server, 0, `  - {name: shares, action: danmaku, room: shares, scope: room, rate: 500, burst: 500, cluster: true}
  - {name: shut, action: danmaku, room: shut, scope: room, rate: 500, burst: 500, cluster: true, on_outage: closed}
  - {name: open, action: danmaku, room: open, scope: room, rate: 1, burst: 1, cluster: true, on_outage: open, grace: 1h}
`)
	m := f.nodes[0]
	m.say("u", "shares")
	server.Pause()
	defer server.Resume()
	deadline := time.Now().Add(3 * time.Second)
	var slowest time.Duration
	seen := map[string]limit.Decision{}
	for i := 0; time.Now().Before(deadline); i++ {
		room := []string{"shares", "shut", "open"}[i%3]
		began := time.Now()
		seen[room] = m.say(fmt.Sprint("u", i), room)
		slowest = max(slowest, time.Since(began))
		<-time.After(5 * time.Millisecond)
	}
	t.Logf("slowest decision %s", slowest)
	if slowest > 500*time.Millisecond {
		t.Errorf("a decision took %s", slowest)
	}
	if seen["shares"].Verdict != limit.Allow || seen["open"].Verdict != limit.Allow || !seen["shut"].Unavailable {
		t.Errorf("after three seconds: %+v", seen)
	}
	if _, _, yes := m.cluster.Degraded(); !yes {
		t.Error("not degraded")
	}
}

// TestNodeKilledWithLeases lets one of three nodes vanish with what it holds:
// the others get all of the rate.
func TestNodeKilledWithLeases(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, 3, server, unhurried, hotRoom)
	var death sync.WaitGroup
	death.Go(func() {
		<-time.After(1500 * time.Millisecond)
		f.nodes[0].dead.Store(true)
		f.nodes[0].proxy.Refuse(true)
		f.nodes[0].proxy.Cut()
	})
	f.flood(4*time.Second, 600)
	death.Wait()
	admitted, excess := f.excess(500, 500)
	t.Logf("admitted %d, %.1f above the bound at worst, degraded for %s", admitted, excess, f.degraded())
	if excess > f.tolerated(500, 500) || admitted < 1000 {
		t.Errorf("admitted %d, %.1f above burst + rate*w", admitted, excess)
	}
}

// TestUserOverNodes is CASES 9: a user's allowance is one, on however many nodes
// the sessions are, and costs nothing per message while they are on one.
func TestUserOverNodes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, 3, server, unhurried, `  - {name: user, action: danmaku, scope: user, rate: 1, per: 1h, burst: 30, cluster: true}
`)
	for range 10 {
		if d := f.nodes[0].say("u", "r"); d.Verdict != limit.Allow {
			t.Fatalf("%+v", d)
		}
	}
	if drawn := f.nodes[0].drawn(); drawn > 2 {
		t.Errorf("%d calls for ten messages at home", drawn)
	}
	allowed := 10
	for i := range 60 {
		if d := f.nodes[i%3].say("u", "r"); d.Verdict == limit.Allow {
			allowed++
		}
	}
	if allowed > 30 || allowed < 27 {
		t.Errorf("%d of 30 allowed over three nodes", allowed)
	}
}

// TestNothingIsLeft gives everything back at the end and finds the whole bucket
// there for the next.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, 1, server, unhurried, `  - {name: room, action: danmaku, scope: room, rate: 1, per: 1h, burst: 1000, cluster: true}
`)
	for range 100 {
		f.nodes[0].say("u", "r")
	}
	if err := f.nodes[0].cluster.Close(t.Context()); err != nil {
		t.Error(err)
	}
	next := newFleet(t, 1, server, unhurried, `  - {name: room, action: danmaku, scope: room, rate: 1, per: 1h, burst: 1000, cluster: true}
`)
	allowed := 0
	for range 1200 {
		if d := next.nodes[0].say("u", "r"); d.Verdict == limit.Allow {
			allowed++
		}
	}
	if allowed < 890 || allowed > 900 {
		t.Errorf("%d of 900 are left", allowed)
	}
}
