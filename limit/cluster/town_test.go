package cluster_test

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

	"liveroom/limit"
	"liveroom/limit/cluster"
	"liveroom/limit/internal/ledger"
)

// link is the way of all nodes to one ledger: it takes half of delay each way,
// and the test may have it lose what goes there or what comes back.
type link struct {
	*ledger.Ledger
	delay time.Duration
	calls atomic.Int64
	draws atomic.Int64
	users atomic.Int64

	silent   atomic.Bool // nothing arrives
	deafened atomic.Bool // everything arrives, no answer comes back
	fail     atomic.Pointer[error]
	moved    atomic.Bool            // the keys are another shard's, and the first is no more
	badKey   atomic.Pointer[string] // calls on it fail, the others of a batch do not
}

func newLink(delay time.Duration) *link {
	return &link{Ledger: ledger.New(time.Now, "a"), delay: delay}
}

func (l *link) way(ctx context.Context) error {
	t := time.NewTimer(l.delay / 2)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *link) Do(ctx context.Context, calls []*cluster.Call) {
	err := l.do(ctx, calls)
	for _, c := range calls {
		if err != nil {
			c.Reply, c.Err = cluster.Reply{}, err
		}
		if bad := l.badKey.Load(); bad != nil && c.Key == *bad {
			c.Reply, c.Err = cluster.Reply{}, errWrongType
		}
	}
}

var errWrongType = errors.New("WRONGTYPE")

func (l *link) do(ctx context.Context, calls []*cluster.Call) error {
	if f := l.fail.Load(); f != nil {
		return *f
	}
	if l.silent.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := l.way(ctx); err != nil {
		return err
	}
	for _, c := range calls {
		l.calls.Add(1)
		switch {
		case strings.HasPrefix(c.Key, "lr:{user"):
			l.users.Add(1)
		case c.Op == cluster.OpDraw:
			l.draws.Add(1)
		}
	}
	l.Ledger.Do(ctx, calls)
	if l.deafened.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return l.way(ctx)
}

func (l *link) Shards() []string {
	if l.moved.Load() {
		return []string{"b"}
	}
	return []string{"a"}
}

func (l *link) Shard(string) string { return l.Shards()[0] }

func (l *link) Beat(ctx context.Context, shard string) (string, error) {
	if shard != l.Shard("") {
		return "", errors.New("there is no such shard")
	}
	if f := l.fail.Load(); f != nil {
		return "", *f
	}
	if l.silent.Load() || l.deafened.Load() {
		<-ctx.Done()
		return "", ctx.Err()
	}
	if err := l.way(ctx); err != nil {
		return "", err
	}
	life, err := l.Ledger.Beat(ctx, "a")
	return life, errors.Join(err, l.way(ctx))
}

// town is some nodes with one store and one clock.
type town struct {
	t     testing.TB
	link  *link
	clock limit.Clock
	nodes []*node

	mu   sync.Mutex
	took []taken
}

type taken struct {
	at   limit.Instant
	cost int64
}

type node struct {
	town    *town
	name    string
	gate    *limit.Gate
	cluster *cluster.Cluster
	parts   []limit.Part // that there ever were; guarded by mu
	cut     atomic.Bool  // the others do not reach it, nor it them
	dead    atomic.Bool

	mu       sync.Mutex
	subjects map[string]*limit.Subject
}

func newTown(t testing.TB, nodes int, rules string, delay time.Duration) *town {
	w := &town{t: t, link: newLink(delay), clock: limit.NewClock()}
	for i := range nodes {
		w.add(fmt.Sprintf("n%d", i+1), rules)
	}
	return w
}

func (w *town) add(name, rules string) *node {
	spec, err := limit.Parse([]byte(rules))
	if err != nil {
		w.t.Fatal(err)
	}
	set, err := spec.Compile()
	if err != nil {
		w.t.Fatal(err)
	}
	n := &node{town: w, name: name, gate: limit.NewGate(set, w.clock), subjects: map[string]*limit.Subject{}}
	n.cluster, err = cluster.New(cluster.Config{Store: w.link, Node: name, Peers: (*peers)(n), Clock: w.clock})
	if err != nil {
		w.t.Fatal(err)
	}
	n.gate.Share(n)
	w.mu.Lock()
	w.nodes = append(w.nodes, n)
	w.mu.Unlock()
	return n
}

// Part implements [limit.Sharer]: it keeps what the cluster makes, to look at.
func (n *node) Part(own limit.Own) limit.Part {
	p := n.cluster.Part(own)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.parts = append(n.parts, p)
	return p
}

func (n *node) Budget() time.Duration { return n.cluster.Budget() }

func (n *node) made() []limit.Part {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.parts)
}

// shares tells how many parts the node's subjects have.
func (n *node) shares() (many int) {
	for _, p := range n.made() {
		if cluster.Shared(p) {
			many++
		}
	}
	return many
}

// check tells the first thing that is wrong with a part there ever was.
func (n *node) check() error {
	for _, p := range n.made() {
		if err := cluster.Check(p); err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
	}
	return nil
}

// all is the nodes so far, for their goroutines.
func (w *town) all() []*node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.nodes)
}

// close gives everything back.
func (w *town) close() {
	for _, n := range w.nodes {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		n.cluster.Close(ctx)
		cancel()
	}
	if err := w.link.Check(); err != nil {
		w.t.Error(err)
	}
}

// subject returns the node's subject of that name.
func (n *node) subject(scope limit.Scope, id string) *limit.Subject {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := scope.String() + ":" + id
	if n.subjects[key] == nil {
		n.subjects[key] = &limit.Subject{Scope: scope}
	}
	return n.subjects[key]
}

// flood asks for a danmaku in a room each step until the clock reads so much, in
// the town's synctest bubble.
func (n *node) flood(id string, step time.Duration, until limit.Instant) {
	for n.town.clock() < until {
		n.room(id, 1)
		time.Sleep(step)
	}
}

// key returns what the ledger has of the one key whose name contains part.
func (w *town) key(part string) ledger.Key {
	w.t.Helper()
	for _, k := range w.link.Keys() {
		if strings.Contains(k.Name, part) {
			return k
		}
	}
	w.t.Fatalf("no key like %q", part)
	return ledger.Key{}
}

// room asks for a danmaku of nobody in particular in a room.
func (n *node) room(id string, cost int64) limit.Decision {
	return n.decide(&limit.Request{Action: limit.Danmaku, Room: id, Cost: cost}, n.subject(limit.ScopeRoom, id))
}

func (n *node) user(id string) limit.Decision {
	return n.decide(&limit.Request{Action: limit.Danmaku, User: id, Cost: 1}, n.subject(limit.ScopeUser, id))
}

func (n *node) decide(q *limit.Request, subjects ...*limit.Subject) limit.Decision {
	d := n.gate.Decide(n.town.clock(), q, subjects...)
	if d.Verdict == limit.Allow {
		n.town.mu.Lock()
		n.town.took = append(n.town.took, taken{d.At, 1})
		n.town.mu.Unlock()
	}
	return d
}

// admitted is how many were allowed.
func (w *town) admitted() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int64(len(w.took))
}

// bound checks that no window held more than burst + rate*w.
func (w *town) bound(burst, rate int64) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := beyond(w.took, burst, rate); n > 0 {
		w.t.Errorf("%d tokens over the bound of %d + %d/s", n, burst, rate)
	}
}

// beyond sorts what was taken and returns by how many tokens some window was
// over burst + rate*w, 0 when none was.
func beyond(took []taken, burst, rate int64) int64 {
	slices.SortFunc(took, func(a, b taken) int { return int(a.at - b.at) })
	level, last := burst*int64(time.Second), limit.Instant(0)
	least := int64(0)
	for _, x := range took {
		level = min(level+rate*int64(x.at-last), burst*int64(time.Second)) - x.cost*int64(time.Second)
		last = x.at
		least = min(least, level)
	}
	return (-least + int64(time.Second) - 1) / int64(time.Second)
}

// peers is how a node reaches the others.
type peers node

func (p *peers) alive() []*node {
	var all []*node
	for _, n := range p.town.all() {
		if !n.dead.Load() && (n == (*node)(p) || !n.cut.Load() && !p.cut.Load()) {
			all = append(all, n)
		}
	}
	return all
}

func (p *peers) Count() int      { return max(len(p.alive()), 1) }
func (p *peers) Reachable() bool { return !p.cut.Load() }

func (p *peers) Recall(ctx context.Context, name, claim string) error {
	for _, n := range p.town.all() {
		switch {
		case n.name != name:
		case n.dead.Load():
			return cluster.ErrNoNode
		case n.cut.Load() || p.cut.Load():
			<-ctx.Done()
			return ctx.Err()
		default:
			return n.cluster.Recalled(ctx, claim)
		}
	}
	return cluster.ErrNoNode
}

var _ cluster.Peers = (*peers)(nil)

var errReadOnly = errors.New("READONLY You can't write against a read only replica")
