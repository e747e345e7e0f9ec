package cluster_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"liveroom/limit"
	"liveroom/limit/cluster"
	"liveroom/limit/internal/ledger"
)

const warmRules = `
rules:
  - {name: conn, action: danmaku, scope: conn, rate: 1000000000, burst: 1000000000}
  - {name: user, action: danmaku, scope: user, rate: 1000000000, burst: 1000000000%s}
  - {name: room, action: danmaku, scope: room, rate: 1000000000, burst: 1000000000%s}
`

// warm returns a decision over three scopes whose shared buckets, if any, are
// at home or in hand; and one over the shared scopes alone.
func warm(tb testing.TB, user, room string) (decide func() limit.Decision) {
	rules := mustCompile(tb, fmt.Sprintf(warmRules, user, room))
	clock := limit.NewClock()
	gate := limit.NewGate(rules, clock)
	if user+room != "" {
		c, err := cluster.New(cluster.Config{Store: ledger.New(time.Now), Node: "n1", Peers: alone{}, Clock: clock, Budget: time.Second})
		if err != nil {
			tb.Fatal(err)
		}
		gate.Share(c)
		tb.Cleanup(func() { c.Close(cancelled()) })
	}
	conn, u, r := &limit.Subject{Scope: limit.ScopeConn}, &limit.Subject{Scope: limit.ScopeUser}, &limit.Subject{Scope: limit.ScopeRoom}
	decide = func() limit.Decision {
		q := limit.Request{Action: limit.Danmaku, User: "u", Room: "r", Cost: 1}
		return gate.Decide(clock(), &q, conn, u, r)
	}
	pace := time.NewTicker(50 * time.Microsecond) // so that what a decision asked for has come before the next
	defer pace.Stop()
	for range 2000 {
		if d := decide(); d.Verdict != limit.Allow {
			tb.Fatalf("have %+v", d)
		}
		<-pace.C
	}
	return decide
}

func mustCompile(tb testing.TB, text string) *limit.Rules {
	tb.Helper()
	spec, err := limit.Parse([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	rules, err := spec.Compile()
	if err != nil {
		tb.Fatal(err)
	}
	return rules
}

// alone is the peers of a node that has none.
type alone struct{ cluster.Peers }

func (alone) Count() int      { return 1 }
func (alone) Reachable() bool { return true }

const clustered = ", cluster: true"

var warmCases = []struct{ name, user, room string }{
	{"no cluster", "", ""},
	{"user at home", clustered, ""},
	{"room in hand", "", clustered},
	{"user at home, room in hand", clustered, clustered},
}

// BenchmarkWarm prints what a decision over connection, user and room costs,
// clock reading included, when its buckets are of this node alone, and when
// they are shared and warm. Run it with -benchtime 1x.
func BenchmarkWarm(b *testing.B) {
	const rounds, n = 101, 10_000
	decides := make([]func() limit.Decision, len(warmCases))
	for i, c := range warmCases {
		decides[i] = warm(b, c.user, c.room)
	}
	for b.Loop() {
		times := make([][]float64, len(decides))
		for range rounds {
			for i, decide := range decides {
				start := time.Now()
				for range n {
					decide()
				}
				times[i] = append(times[i], float64(time.Since(start).Nanoseconds())/n)
			}
		}
		for i, c := range warmCases {
			slices.Sort(times[i])
			fmt.Printf("%-32s %-28s %6.1f ns (%.1f to %.1f)\n", b.Name(), c.name, times[i][rounds/2], times[i][rounds/4], times[i][rounds*3/4])
		}
	}
}

// A warm decision does not allocate.
func TestClusterWarmAllocates(t *testing.T) {
	for _, c := range warmCases {
		decide := warm(t, c.user, c.room)
		least := 1e9
		for range 5 { // a draw beside it allocates; not every round has one
			least = min(least, testing.AllocsPerRun(200, func() { decide() }))
		}
		if least != 0 {
			t.Errorf("%s: %v allocations", c.name, least)
		}
	}
}
