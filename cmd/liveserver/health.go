package main

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// dependencyNATS is the one thing a node of this version can lose. Inside the process it is lost together with the data
// directory's disk.
const dependencyNATS = "nats"

// health answers whether this node lives, and whether it wants traffic.
type health struct {
	node     string
	nats     func() error // nil when NATS and the ledger work
	draining atomic.Bool
	seconds  prometheus.Counter // degraded because of NATS
}

func newHealth(node string, nats func() error, reg prometheus.Registerer) *health {
	degraded := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "liveroom_degraded_seconds_total", Help: "Time served without a dependency.",
	}, []string{"dependency"})
	reg.MustRegister(degraded)
	return &health{node: node, nats: nats, seconds: degraded.WithLabelValues(dependencyNATS)}
}

// degradedEvery is how often the degraded time is counted, so that a metric shows it within a second.
const degradedEvery = 500 * time.Millisecond

// watch counts degraded time until ctx ends.
func (h *health) watch(ctx context.Context) {
	tick := time.NewTicker(degradedEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if h.nats() != nil {
				h.seconds.Add(degradedEvery.Seconds())
			}
		case <-ctx.Done():
			return
		}
	}
}

// readiness is the body of /readyz.
type readiness struct {
	Status   string   `json:"status"` // ok, degraded or draining
	Node     string   `json:"node"`
	Version  string   `json:"version"`
	Degraded []string `json:"degraded"` // what is away while the node still serves
}

// register adds the health checks to the admin listener.
func (h *health) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", h.ready)
}

func (h *health) ready(w http.ResponseWriter, _ *http.Request) {
	out, status := readiness{Status: "ok", Node: h.node, Version: version(), Degraded: []string{}}, http.StatusOK
	if h.nats() != nil {
		out.Status, out.Degraded = "degraded", append(out.Degraded, dependencyNATS)
	}
	if h.draining.Load() {
		out.Status, status = "draining", http.StatusServiceUnavailable
	}
	respond(w, status, out)
}

func respond(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client went away: nobody is left to tell
}
