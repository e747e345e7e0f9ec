package model

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"liveroom/limit/cluster"
	"liveroom/limit/internal/ledger"
)

// server is one server of the store: a ledger that can be silent, go away,
// forget, and be replaced by a replica that lags, and a count of what it did.
type server struct {
	name string
	book *ledger.Ledger

	mu      sync.Mutex
	refuses bool
	silent  bool
	recent  []executed // calls, as far back as a fail-over may reach

	counts Calls
	lost   map[string]int64 // shares granted by calls that a fail-over lost, by key
	debts  map[string]int64 // told by each name of a lease: it has seen an outage
	perKey map[string]int64 // calls
}

// executed is a call and the instant it took effect.
type executed struct {
	at      time.Time
	key     string
	granted int64
}

// Calls counts what servers were asked, by operation.
type Calls struct {
	ByOp      map[string]int64
	Pipelines int64
	Beats     int64
	Stale     int64
}

// reach is how far back a fail-over may reach.
const reach = time.Second

func newServer(name string) *server {
	return &server{
		name:   name,
		book:   ledger.New(time.Now, name),
		counts: Calls{ByOp: map[string]int64{}},
		lost:   map[string]int64{},
		debts:  map[string]int64{},
		perKey: map[string]int64{},
	}
}

// execute runs a pipeline's calls and returns them with their replies.
func (s *server) execute(calls []cluster.Call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Pipelines++
	done := slices.Clone(calls)
	pointers := make([]*cluster.Call, len(done))
	for i := range done {
		pointers[i] = &done[i]
	}
	s.book.Do(context.Background(), pointers)
	if err := s.book.Check(); err != nil {
		panic("model: the store broke its own invariant: " + err.Error())
	}
	for i := range done {
		s.noteLocked(&done[i])
	}
	return reply{calls: done}
}

func (s *server) noteLocked(c *cluster.Call) {
	s.counts.ByOp[c.Op.String()]++
	s.perKey[c.Key]++
	if c.Debt > 0 {
		s.debts[c.Node] = max(s.debts[c.Node], c.Debt)
	}
	if c.Err != nil {
		s.counts.Stale++
		return
	}
	for len(s.recent) > 0 && time.Since(s.recent[0].at) > reach {
		s.recent = s.recent[1:]
	}
	granted := c.Reply.Granted
	if c.Op == cluster.OpClaim && c.Reply.Owner == c.Node {
		granted = max(c.Reply.Left, 0) // all of it
	}
	if granted > 0 {
		s.recent = append(s.recent, executed{time.Now(), c.Key, granted})
	}
}

// count counts an operation of the ways that are not ours.
func (s *server) count(op string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.ByOp[op]++
	s.counts.Pipelines++
}

// FailOver promotes a replica that lacks the writes of the last lag, up to
// reach, and whose clock differs by step.
func (s *server) FailOver(lag, step time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.recent {
		if time.Since(e.at) < lag {
			s.lost[e.key] += e.granted
		}
	}
	s.recent = nil
	s.book.FailOver(s.name, lag, step)
}

// Wipe restarts the server empty.
func (s *server) Wipe() {
	s.book.Wipe(s.name)
	s.set(func(s *server) { s.refuses, s.silent = false, false })
}

// Step sets the server's clock forward or back.
func (s *server) Step(by time.Duration) { s.book.Step(s.name, by) }

// Hang makes the server swallow everything, Refuse turn connections away.
func (s *server) Hang(on bool) { s.set(func(s *server) { s.silent = on }) }

// Refuse turns connections away, or no longer.
func (s *server) Refuse(on bool) { s.set(func(s *server) { s.refuses = on }) }

// set changes the server's state under its lock.
func (s *server) set(change func(*server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *server) down() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refuses
}

func (s *server) hung() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silent
}

// store is a node's view of all servers: what the engine under test asks.
type store struct {
	link    *link
	servers []*server
}

var _ cluster.Store = (*store)(nil)

// Shard hashes a key's tag, as Redis Cluster does, to one of the servers.
func (s *store) Shard(key string) string {
	key = tag(key)
	h := uint32(2166136261)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	return s.servers[int(h)%len(s.servers)].name
}

func (s *store) Shards() []string {
	var names []string
	for _, server := range s.servers {
		names = append(names, server.name)
	}
	return names
}

func (s *store) server(name string) *server {
	for _, server := range s.servers {
		if server.name == name {
			return server
		}
	}
	panic("model: no such shard: " + name)
}

// Do sends copies, so that what the server does later touches nothing here.
func (s *store) Do(ctx context.Context, calls []*cluster.Call) {
	sent := make([]cluster.Call, len(calls))
	for i, c := range calls {
		sent[i] = *c
	}
	server := s.server(s.Shard(calls[0].Key))
	r := s.link.send(ctx, server, func() reply { return server.execute(sent) })
	for i, c := range calls {
		if r.err != nil {
			c.Err = r.err
			continue
		}
		c.Reply, c.Err = r.calls[i].Reply, r.calls[i].Err
	}
}

func (s *store) Beat(ctx context.Context, shard string) (string, error) {
	to := s.server(shard)
	r := s.link.send(ctx, to, func() reply {
		to.set(func(s *server) { s.counts.Beats++ })
		life, err := to.book.Beat(context.Background(), shard)
		return reply{life: life, err: err}
	})
	return r.life, r.err
}

// tag returns what stands in a key's braces.
func tag(key string) string {
	_, key, _ = strings.Cut(key, "{")
	key, _, _ = strings.Cut(key, "}")
	return key
}
