package main

import "github.com/prometheus/client_golang/prometheus"

// newClusterMetrics registers the series of quotas that several nodes share. A node of this version is alone: it makes
// no such call and takes no such token, so all of them truly stay at zero; they are there so that alerts tell zero from
// absent.
func newClusterMetrics(reg prometheus.Registerer) {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "liveroom_" + name, Help: help}, labels)
		reg.MustRegister(v)
		return v
	}
	calls := vec("redis_calls_total", "Calls to Redis; op tells room draws from user calls.", "op", "result")
	for _, op := range []string{"room", "user"} {
		for _, result := range []string{"ok", "error", "timeout"} {
			calls.WithLabelValues(op, result)
		}
	}
	tokens := vec("quota_tokens_total", "Tokens of shared quotas by what became of them.", "event")
	for _, event := range []string{"granted", "used", "returned", "expired"} {
		tokens.WithLabelValues(event)
	}
	breaker := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "liveroom_breaker_state", Help: "0: closed, calls are made; 1: half open, one probes; 2: open, none are made.",
	}, []string{"dependency"})
	breaker.WithLabelValues("redis")
	reg.MustRegister(breaker)
}
