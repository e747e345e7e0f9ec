package ledger

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// The faults below panic when there is no server of that name.

func (l *Ledger) with(name string, f func(*shard)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.shard(name)
	if err != nil {
		panic(err)
	}
	f(s)
}

// Step sets a server's clock forward or back. As in Redis, keys whose time to
// live ends before the new reading are gone.
func (l *Ledger) Step(name string, by time.Duration) {
	l.with(name, func(s *shard) { s.step += by })
}

// Wipe restarts a server empty.
func (l *Ledger) Wipe(name string) {
	l.with(name, func(s *shard) {
		s.runs++
		s.keys, s.journal = map[string]kept{}, nil
	})
}

// Restart restarts a server that has kept every write.
func (l *Ledger) Restart(name string) { l.with(name, func(s *shard) { s.runs++ }) }

// Replicate makes the servers remember their writes of the last lag at least, so
// that FailOver can take them back. Without it nothing is remembered.
func (l *Ledger) Replicate(lag time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lag = lag
}

// FailOver puts a replica in a server's place that lacks the writes of the last
// lag, as far as Replicate remembers them, and whose clock differs from the
// server's by step.
func (l *Ledger) FailOver(name string, lag, step time.Duration) {
	l.with(name, func(s *shard) {
		s.runs++
		s.step += step
		since := l.now().Add(-lag)
		for i := len(s.journal) - 1; i >= 0 && s.journal[i].at.After(since); i-- {
			w := s.journal[i]
			if w.was.state == nil {
				delete(s.keys, w.key)
			} else {
				s.keys[w.key] = w.was
			}
			s.journal = s.journal[:i]
		}
	})
}

// Down lets every call to a server fail with err, without effect, until it is
// nil again.
func (l *Ledger) Down(name string, err error) { l.with(name, func(s *shard) { s.down = err }) }

// Key is what a store has of one key, for tests to look at. Amounts are shares.
type Key struct {
	Name string
	// Now is the key's clock at its last step, in microseconds.
	Now int64
	// Left is the level at Now, Outstanding what nodes may still spend then.
	Left, Outstanding int64
	Tier              int
	Owner             string
	// Nodes are who is remembered, as they were first heard of.
	Nodes []string
	// Lives is how long the server keeps the key from now on.
	Lives time.Duration
}

// Keys lists all keys of all servers by name.
func (l *Ledger) Keys() []Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Key
	for _, s := range l.shards {
		raw := s.clock(l.now())
		for _, name := range slices.Sorted(maps.Keys(s.keys)) {
			k := s.get(name, raw)
			if k.state == nil {
				continue
			}
			key := Key{Name: name, Now: k.state.t, Left: k.state.left(), Tier: int(k.state.tier), Owner: k.state.owner}
			key.Outstanding = k.state.outstanding(k.state.t)
			for _, e := range k.state.nodes {
				key.Nodes = append(key.Nodes, e.node)
			}
			key.Lives = time.Duration(k.expires-raw) * time.Microsecond
			list = append(list, key)
		}
	}
	return list
}

// Check returns the first broken invariant of any key: more than its size in the
// bucket and in hands together, or numbers that a double does not hold exactly.
func (l *Ledger) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.shards {
		for _, name := range slices.Sorted(maps.Keys(s.keys)) {
			if err := s.keys[name].state.check(); err != nil {
				return fmt.Errorf("%s: %s: %w", s.name, name, err)
			}
		}
	}
	return nil
}
