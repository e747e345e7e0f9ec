package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/internal/config"
	"liveroom/internal/trace"
	"liveroom/limit/cluster"
	"liveroom/limit/redisstore"
)

// quotas are the limits that hold over all nodes: the store that keeps them, and this node's part. Without Redis this node
// is the authority on its own and there are none.
type quotas struct {
	store   *redisstore.Store
	cluster *cluster.Cluster
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
	n.closers.add("give quotas back", closeTimeout, n.quotas.close)
	n.quotas.cluster, err = cluster.New(cluster.Config{
		Store: tracedStore{store, n.trace}, Node: n.cfg.NodeID, Peers: peers{n.fabric}, Clock: n.gate.Now, Log: n.log,
	})
	if err != nil {
		return err
	}
	n.gate.Share(n.quotas.cluster)
	newClusterMetrics(reg, n.quotas.cluster)
	return n.fabric.Questions.Answer(verbRecall, recalled(n.quotas.cluster))
}

// tracedStore has each pipeline be an operation. It is beside the decisions that wait for it, and no way of a danmaku.
type tracedStore struct {
	cluster.Store
	trace *trace.Tracer
}

// Do implements [cluster.Store].
func (s tracedStore) Do(ctx context.Context, calls []*cluster.Call) {
	ctx, op := s.trace.Begin(ctx, trace.Redis, "quotas", s.Shard(calls[0].Key))
	s.Store.Do(ctx, calls)
	var err error
	for _, c := range calls {
		err = cmp.Or(err, c.Err)
	}
	op.End(err)
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

// clusterMetrics shows what quotas over several nodes cost and come to. A node without Redis makes no such call and takes
// no such token; its series stay at zero, so that alerts tell zero from absent.
type clusterMetrics struct {
	stats   func() cluster.Stats
	calls   *prometheus.Desc
	tokens  *prometheus.Desc
	breaker *prometheus.Desc
}

// newClusterMetrics registers the series; stats may be nil.
func newClusterMetrics(reg prometheus.Registerer, c *cluster.Cluster) {
	m := &clusterMetrics{
		stats: func() cluster.Stats { return cluster.Stats{} },
		calls: prometheus.NewDesc("liveroom_redis_calls_total",
			"Calls to Redis; op tells draws on what many share from calls about one user's buckets.", []string{"op", "result"}, nil),
		tokens:  prometheus.NewDesc("liveroom_quota_tokens_total", "Tokens of shared quotas by what became of them.", []string{"event"}, nil),
		breaker: prometheus.NewDesc("liveroom_breaker_state", "0: closed, calls are made; 1: one call probes; 2: open, none are made. The worst shard's.", []string{"dependency"}, nil),
	}
	if c != nil {
		m.stats = c.Stats
	}
	reg.MustRegister(m)
}

// Describe implements prometheus.Collector.
func (m *clusterMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.calls
	ch <- m.tokens
	ch <- m.breaker
}

// Collect implements prometheus.Collector.
func (m *clusterMetrics) Collect(ch chan<- prometheus.Metric) {
	s := m.stats()
	count := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	made := map[[2]string]int64{}
	for _, c := range s.Calls {
		made[[2]string{c.Op, c.Result}] = c.N
	}
	for _, op := range []string{"room", "user", "other"} {
		for _, result := range []string{"ok", "error", "timeout"} {
			count(m.calls, made[[2]string{op, result}], op, result)
		}
	}
	count(m.tokens, s.Granted, "granted")
	count(m.tokens, s.Used, "used")
	count(m.tokens, s.Returned, "returned")
	count(m.tokens, s.Expired, "expired")
	ch <- prometheus.MustNewConstMetric(m.breaker, prometheus.GaugeValue, float64(s.Breaker), dependencyRedis)
}
