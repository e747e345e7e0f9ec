package main

import (
	"context"
	"net/url"
	"sync"
)

// team is the viewers of one node, of whom any may send.
type team struct {
	crowd *crowd
	next  int
}

// teams picks who sends, node by node. Safe for concurrent use: the speaker picks while nodes come and go.
type teams struct {
	mu   sync.Mutex
	each []*team // guarded by mu; a node that was replaced keeps its place
	turn int     // guarded by mu
}

// inTurn stands for all nodes, one after the other.
const inTurn = -1

// pick returns who sends next on node want, or on the next one that has somebody; nil when nobody is anywhere.
func (t *teams) pick(want int) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := want
	if want == inTurn {
		first, t.turn = t.turn, (t.turn+1)%max(len(t.each), 1)
	}
	for i := range t.each {
		if s := t.each[(first+i)%len(t.each)].pick(); s != nil {
			return s
		}
	}
	return nil
}

func (m *team) pick() *session {
	all := m.crowd.all()
	for range all {
		m.next = (m.next + 1) % len(all)
		if s := all[m.next]; s.joined() {
			return s
		}
	}
	return nil
}

func (t *teams) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.each)
}

// put makes c the viewers of place i, which may be a new one.
func (t *teams) put(i int, c *crowd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i == len(t.each) {
		t.each = append(t.each, nil)
	}
	t.each[i] = &team{crowd: c}
}

// sessions are those of all teams.
func (t *teams) sessions() []*session {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*session
	for _, m := range t.each {
		out = append(out, m.crowd.live()...)
	}
	return out
}

// crowdAt connects n viewers to one node; change may alter the crowd before.
func (b *bench) crowdAt(ctx context.Context, target *url.URL, n int, stable bool, change func(*crowd)) (*crowd, error) {
	c := b.crowd(n, stable)
	dial := *b.dial
	dial.targets = []*url.URL{target}
	c.dial = &dial
	if change != nil {
		change(c)
	}
	err := c.connect(ctx, n, b.o.connectRate)
	b.connected(c, n)
	return c, err
}
