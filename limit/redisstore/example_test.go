package redisstore_test

import (
	"context"
	"fmt"

	"liveroom/limit"
	"liveroom/limit/cluster"
	"liveroom/limit/redisstore"
)

// A node opens the store and hands it to its Cluster. Opening connects to
// nothing, so that a node starts while Redis is away.
func Example() {
	store, err := redisstore.Open(redisstore.Config{URL: "redis://:secret@127.0.0.1:6379/1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	clock := limit.NewClock()
	c, err := cluster.New(cluster.Config{Store: store, Node: "n1", Clock: clock})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(context.Background()) // before the store
	// gate.Share(c)
	fmt.Println(store.Shards())
	// Output: [redis]
}
