package redistest

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Cluster is a Redis Cluster of masters that share all slots, without replicas.
type Cluster struct{ Masters []*Server }

// StartCluster returns a cluster of n masters that is ready to serve.
func StartCluster(t testing.TB, n int) *Cluster {
	t.Helper()
	c := &Cluster{}
	for i := range n {
		s := Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-config-file", "nodes.conf")
		first, last := i*slots/n, (i+1)*slots/n-1
		s.Do("CLUSTER", "ADDSLOTSRANGE", first, last)
		s.Do("CLUSTER", "SET-CONFIG-EPOCH", i+1)
		c.Masters = append(c.Masters, s)
	}
	host, port, _ := net.SplitHostPort(c.Masters[0].Addr)
	for _, s := range c.Masters[1:] {
		s.Do("CLUSTER", "MEET", host, port)
	}
	for _, s := range c.Masters {
		c.ready(t, s)
	}
	return c
}

const slots = 16384

// URL is the cluster's address as configurations have it.
func (c *Cluster) URL() string {
	var addrs []string
	for _, s := range c.Masters {
		addrs = append(addrs, s.Addr)
	}
	return "redis+cluster://" + strings.Join(addrs, ",")
}

// Move gives one slot from a master to another, with no keys in it.
func (c *Cluster) Move(slot, from, to int) {
	id := c.Masters[to].Do("CLUSTER", "MYID")
	c.Masters[to].Do("CLUSTER", "SETSLOT", slot, "IMPORTING", c.Masters[from].Do("CLUSTER", "MYID"))
	c.Masters[from].Do("CLUSTER", "SETSLOT", slot, "MIGRATING", id)
	for _, i := range []int{to, from} {
		c.Masters[i].Do("CLUSTER", "SETSLOT", slot, "NODE", id)
	}
}

// ready waits until a master says that the cluster is whole.
func (c *Cluster) ready(t testing.TB, s *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		info, _ := s.Client().ClusterInfo(ctx).Result()
		if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(len(c.Masters))) {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("the cluster does not form:\n%s", info)
		}
		wait(ctx, 20*time.Millisecond)
	}
}
