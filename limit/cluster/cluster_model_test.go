package cluster_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"liveroom/limit"
)

// TestClusterModel lets nodes ask, leave, forget, pause, lose their peers and
// their store, and their rules change, in any order. After every step the states
// of each lease, claim and slot agree, dropped ones included, and the store's
// sums do; a move that is not in the tables of state.go panics. At the end no window of a room or a user held more than its bound, but for
// what a node that was cut off added.
func TestClusterModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			m := &clusterModel{town: newTown(t, 3, modelRules, rapid.SampledFrom([]time.Duration{0, 300 * time.Microsecond, 8 * time.Millisecond}).Draw(rt, "delay"))}
			steps := rapid.IntRange(5, 60).Draw(rt, "steps")
			for i := range steps {
				m.step(rt)
				synctest.Wait()
				if err := m.check(); err != nil {
					rt.Fatalf("after step %d: %v", i, err)
				}
			}
			m.bad(rt, false)
			for _, n := range m.nodes {
				n.cut.Store(false)
			}
			m.held.Wait()
			time.Sleep(3 * time.Second)
			m.close()
			if err := m.over(); err != nil {
				rt.Fatal(err)
			}
		})
	})
}

const modelRules = `
rules:
  - {name: room, action: danmaku, scope: room, rate: 40, burst: 30, cluster: true}
  - {name: user, action: gift, scope: user, rate: 2, burst: 6, cluster: true}
  - {name: slot, action: api, scope: room, algorithm: concurrency, burst: 3, per: 2s, cluster: true}
  - {name: like, action: like, scope: room, rate: 100, burst: 50, cost: count, fold: true, cluster: true}
`

// modelSets have rules come and go beside those of a room and a user, and count
// in another place or scale.
var modelSets = []string{
	modelRules,
	modelRules + "  - {name: a, action: gift, scope: user, rate: 20, burst: 60}\n",
	modelRules + "  - {name: a, action: danmaku, scope: room, cluster: true, tiers: [{below: 100, rate: 400, burst: 300}, {rate: 10, burst: 10}]}\n",
	strings.ReplaceAll(modelRules, "algorithm: concurrency, burst: 3", "algorithm: concurrency, burst: 2"),
	strings.ReplaceAll(modelRules, "action: like, scope: room, rate: 100", "action: like, scope: room, multiply: {host: 3}, rate: 100"),
}

type clusterModel struct {
	*town
	version int64
	mu      sync.Mutex
	held    sync.WaitGroup // slots
	room    []taken
	user    []taken

	worse limit.Instant // when the store last answered nothing
	out   bool          // it did so again within a second: to a node that may be an outage, in which each admits its part
}

func (m *clusterModel) step(rt *rapid.T) {
	n := m.nodes[rapid.IntRange(0, len(m.nodes)-1).Draw(rt, "node")]
	switch rapid.SampledFrom([]string{"room", "room", "flood", "user", "user", "like", "slot", "pause", "leave", "forget", "cut", "rules", "reset", "bad"}).Draw(rt, "what") {
	case "room":
		m.ask(n, limit.Danmaku, limit.ScopeRoom, 1, &m.room)
	case "flood":
		var wg sync.WaitGroup
		for range rapid.IntRange(1, 40).Draw(rt, "askers") {
			wg.Go(func() { m.ask(n, limit.Danmaku, limit.ScopeRoom, 1, &m.room) })
		}
		wg.Wait()
	case "user":
		m.ask(n, limit.Gift, limit.ScopeUser, 1, &m.user)
	case "like":
		m.ask(n, limit.Like, limit.ScopeRoom, rapid.Int64Range(0, 80).Draw(rt, "taps"), nil)
	case "slot":
		m.slot(n, time.Duration(rapid.IntRange(0, 300).Draw(rt, "held"))*time.Millisecond)
	case "cut":
		n.cut.Store(!n.cut.Load())
	case "rules":
		m.version++
		n.swap(m.version, rapid.SampledFrom(modelSets).Draw(rt, "set"))
	case "reset":
		n.subject(limit.ScopeRoom, "slots").Reset()
	case "pause":
		time.Sleep(time.Duration(rapid.IntRange(1, 700).Draw(rt, "ms")) * time.Millisecond)
	case "leave":
		n.subject(limit.ScopeUser, "u").Leave(m.clock())
	case "forget":
		n.forget(limit.ScopeUser, "u")
		n.forget(limit.ScopeRoom, "r")
	case "bad":
		m.bad(rt, rapid.Bool().Draw(rt, "on"))
	}
}

// bad has the store answer nothing, for less than an outage, or well again.
func (m *clusterModel) bad(rt *rapid.T, on bool) {
	if !on {
		m.link.silent.Store(false)
		m.link.deafened.Store(false)
		return
	}
	now := m.clock()
	m.out = m.out || m.worse != 0 && now.Sub(m.worse) < time.Second
	m.worse = now
	if rapid.Bool().Draw(rt, "arrives") {
		m.link.deafened.Store(true)
	} else {
		m.link.silent.Store(true)
	}
	time.Sleep(time.Duration(rapid.IntRange(1, 90).Draw(rt, "ms")) * time.Millisecond)
	m.link.silent.Store(false)
	m.link.deafened.Store(false)
}

func (m *clusterModel) ask(n *node, a limit.Action, scope limit.Scope, cost int64, into *[]taken) {
	began := m.clock()
	d := n.gate.Decide(began, &limit.Request{Action: a, Cost: cost, Room: "r", User: "u"}, n.subject(scope, map[limit.Scope]string{limit.ScopeRoom: "r", limit.ScopeUser: "u"}[scope]))
	if took := m.clock().Sub(began); took > max(30*time.Millisecond, 6*m.link.delay+20*time.Millisecond)+time.Millisecond {
		m.t.Errorf("a decision took %s", took)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if into != nil && d.Verdict == limit.Allow {
		*into = append(*into, taken{d.At, 1})
	}
}

// slot takes one and gives it back after a while.
func (m *clusterModel) slot(n *node, held time.Duration) {
	m.held.Go(func() {
		now, s := m.clock(), n.subject(limit.ScopeRoom, "slots")
		q := &limit.Request{Action: limit.API, Room: "slots"}
		if n.gate.Decide(now, q, s).Verdict == limit.Allow {
			time.Sleep(held)
			n.gate.Release(now, q, s)
		}
	})
}

// forget does what an owner does with a subject that is full.
func (n *node) forget(scope limit.Scope, id string) {
	s := n.subject(scope, id)
	if s.Full(n.town.clock()) {
		n.mu.Lock()
		delete(n.subjects, scope.String()+":"+id)
		n.mu.Unlock()
	}
}

func (m *clusterModel) check() error {
	for _, n := range m.nodes {
		if err := n.check(); err != nil {
			return err
		}
	}
	return m.link.Check()
}

// over tells what was admitted beyond a bound.
func (m *clusterModel) over() error {
	for _, b := range []struct {
		name        string
		took        []taken
		burst, rate int64
	}{{"room", m.room, 30, 40}, {"user", m.user, 6, 2}} {
		if m.out {
			b.burst *= 2
		}
		if n := beyond(b.took, b.burst, b.rate); n > 0 {
			return fmt.Errorf("%s: %d tokens over %d + %d/s", b.name, n, b.burst, b.rate)
		}
	}
	return nil
}
