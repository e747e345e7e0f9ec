package node

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/internal/config"
	"liveroom/limit"
	"liveroom/limit/redisstore"
)

// quotas are the limits that hold over all nodes: the store that keeps them, and this node's part. Without Redis this node
// is the authority on its own and there are none.
type quotas struct {
	store   *redisstore.Store
	cluster *limit.Cluster
}

// shareQuotas makes the gate's rules with cluster: true hold over all nodes.
func (n *Node) shareQuotas(reg prometheus.Registerer) error {
	if n.cfg.Redis == "" {
		newClusterMetrics(reg, nil)
		return nil
	}
	trust, err := roots("redis_ca", n.cfg.RedisCA)
	if err != nil {
		return err
	}
	store, err := redisstore.Open(redisstore.Config{URL: n.cfg.Redis, TLS: &tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS12}})
	if err != nil {
		return config.Fault{Path: "redis", Allowed: "the URL of a Redis", Received: strings.TrimPrefix(err.Error(), "redisstore: ")}
	}
	n.quotas.store = store
	n.quotas.cluster, err = limit.NewCluster(limit.ClusterConfig{
		Store: store, Node: n.cfg.NodeID, Peers: peers{n.fabric}, Clock: n.gate.Now, Log: n.log,
	})
	if err != nil {
		return err
	}
	n.gate.Share(n.quotas.cluster)
	newClusterMetrics(reg, n.quotas.cluster)
	return n.fabric.Answer(verbRecall, recalled(n.quotas.cluster))
}

// away is why the store is not asked; nil while it is, and when there is none.
func (q *quotas) away() error {
	if q.cluster == nil {
		return nil
	}
	if _, reason, yes := q.cluster.Degraded(); yes {
		return errors.New(reason)
	}
	return nil
}

// close gives back what this node holds.
func (q *quotas) close(ctx context.Context) error {
	var err error
	if q.cluster != nil {
		err = q.cluster.Close(ctx)
	}
	if q.store != nil {
		err = errors.Join(err, q.store.Close())
	}
	return err
}
