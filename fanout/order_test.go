package fanout

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"liveroom/protocol"
)

// The order of danmaku over a cluster of three NATS servers, a node on each: what one node publishes keeps its order
// everywhere; how the messages of different nodes lie between one another differs from node to node, and is logged.
func TestOrderOverAClusterOfServers(t *testing.T) {
	t.Parallel()
	cluster := natsCluster(t)
	var up sync.WaitGroup
	for _, m := range cluster {
		up.Go(func() { m.start(t) })
	}
	up.Wait()
	const nodes, each = 3, 2000
	fabrics, listeners := make([]*Fabric, nodes), make([]*listener, nodes)
	for i := range fabrics {
		fabrics[i] = open(t, Config{
			NodeID: fmt.Sprint("n", i), URLs: clusterURLs(cluster)[i : i+1], Shared: true, ProbeTimeout: wait, StoreTimeout: wait / 3,
		})
		listeners[i], _ = subscribe(t, fabrics[i], "demo")
	}
	for i, f := range fabrics { // a subscription takes a moment to the other servers
		for k, l := range listeners {
			eventually(t, fmt.Sprint("node ", k, " hears node ", i), func() bool {
				if err := f.Feeds.Publish(protocol.ClassDanmaku, "demo", []byte("warm")); err != nil {
					return false
				}
				select {
				case <-l.events:
					return true
				case <-time.After(50 * time.Millisecond):
					return false
				}
			})
		}
	}
	var senders sync.WaitGroup
	for n, f := range fabrics {
		senders.Go(func() {
			for i := range each {
				if err := f.Feeds.Publish(protocol.ClassDanmaku, "demo", fmt.Appendf(nil, "%d %d", n, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	senders.Wait()
	orders := make([][]string, nodes)
	for k, l := range listeners {
		next := [nodes]int{}
		for len(orders[k]) < nodes*each {
			text := strings.TrimPrefix(receive(t, l.events), "danmaku ")
			if text == "warm" {
				continue
			}
			var sender, number int
			if _, err := fmt.Sscanf(text, "%d %d", &sender, &number); err != nil || number != next[sender] {
				t.Fatalf("node %d: %q after %d of that sender: %v", k, text, next[sender], err)
			}
			next[sender]++
			orders[k] = append(orders[k], text)
		}
	}
	for a := range nodes {
		for b := a + 1; b < nodes; b++ {
			differ := 0
			for i := range orders[a] {
				if orders[a][i] != orders[b][i] {
					differ++
				}
			}
			t.Logf("nodes %d and %d have %d of %d places different", a, b, differ, nodes*each)
		}
	}
}
