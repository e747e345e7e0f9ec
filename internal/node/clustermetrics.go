package node

import (
	"github.com/prometheus/client_golang/prometheus"

	"liveroom/limit"
)

// clusterMetrics shows what quotas over several nodes cost and come to. A node without Redis makes no such call and takes
// no such token; its series stay at zero, so that alerts tell zero from absent.
type clusterMetrics struct {
	stats   func() limit.ClusterStats
	calls   *prometheus.Desc
	tokens  *prometheus.Desc
	breaker *prometheus.Desc
}

// newClusterMetrics registers the series; stats may be nil.
func newClusterMetrics(reg prometheus.Registerer, cluster *limit.Cluster) {
	m := &clusterMetrics{
		stats: func() limit.ClusterStats { return limit.ClusterStats{} },
		calls: prometheus.NewDesc("liveroom_redis_calls_total",
			"Calls to Redis; op tells draws on what many share from calls about one user's buckets.", []string{"op", "result"}, nil),
		tokens:  prometheus.NewDesc("liveroom_quota_tokens_total", "Tokens of shared quotas by what became of them.", []string{"event"}, nil),
		breaker: prometheus.NewDesc("liveroom_breaker_state", "0: closed, calls are made; 1: one call probes; 2: open, none are made. The worst shard's.", []string{"dependency"}, nil),
	}
	if cluster != nil {
		m.stats = cluster.Stats
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
