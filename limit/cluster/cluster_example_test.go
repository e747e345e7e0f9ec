package cluster_test

import (
	"context"
	"fmt"
	"time"

	"liveroom/limit"
	"liveroom/limit/cluster"
	"liveroom/limit/internal/ledger"
)

// Two nodes have one allowance for a room. The store is one in memory here; in
// a server it is redisstore's.
func ExampleCluster() {
	spec, err := limit.Parse([]byte(`
rules:
  - {name: danmaku-room, action: danmaku, scope: room, rate: 0, burst: 3, cluster: true}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	rules, err := spec.Compile()
	if err != nil {
		fmt.Println(err)
		return
	}
	clock, store := limit.NewClock(), ledger.New(time.Now)
	ask := func(node string, times int) {
		gate := limit.NewGate(rules, clock)
		c, err := cluster.New(cluster.Config{Store: store, Node: node, Clock: clock, Budget: time.Second})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer c.Close(context.Background())
		gate.Share(c)
		room := limit.Subject{Scope: limit.ScopeRoom}
		for range times {
			d := gate.Decide(gate.Now(), &limit.Request{Action: limit.Danmaku, Room: "demo"}, &room)
			fmt.Println(node, d.Verdict)
		}
	}
	ask("n1", 2)
	ask("n2", 2)
	// Output:
	// n1 allow
	// n1 allow
	// n2 allow
	// n2 reject
}
