package main

import (
	"sync"

	"liveroom/loadtest/internal/client"
)

// teams are the viewers of each node, of whom any may speak. Safe for concurrent use: the speaker picks while nodes come and go.
type teams struct {
	mu   sync.Mutex
	each []team // guarded by mu; a node that was replaced keeps its place
	turn int    // guarded by mu
}

type team struct {
	crowd *client.Crowd
	next  int
}

// inTurn stands for all nodes, one after the other.
const inTurn = -1

// pick returns who sends next on node want, or on the next one that has somebody; nil when nobody is anywhere.
func (t *teams) pick(want int) *client.Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	if want == inTurn {
		want, t.turn = t.turn, t.turn+1
	}
	for i := range t.each {
		m := &t.each[(want+i)%len(t.each)]
		all := m.crowd.All()
		for range all {
			m.next = (m.next + 1) % len(all)
			if s := all[m.next]; s.Joined() {
				return s
			}
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
func (t *teams) put(i int, c *client.Crowd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i == len(t.each) {
		t.each = append(t.each, team{})
	}
	t.each[i] = team{crowd: c}
}

// sessions are those of all teams.
func (t *teams) sessions() (out []*client.Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.each {
		out = append(out, m.crowd.Live()...)
	}
	return out
}
