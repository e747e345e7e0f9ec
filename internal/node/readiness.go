package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/fanout/link"
)

// What a node can lose and go on serving, and beside these what it follows, see [link.Followed]. NATS inside the process is
// lost together with the data directory's disk.
const (
	dependencyNATS   = "nats"
	dependencyRedis  = "redis"
	dependencyStore  = "store"
	dependencyLedger = "ledger" // what was stored is not whole; until the next start
)

// dependency tells whether something that others run is there.
type dependency struct {
	name string
	err  func() error // nil when it is
}

// needs are all that this node can lose.
func (n *Node) needs() []dependency {
	out := []dependency{{dependencyNATS, n.fabric.Health}, {dependencyRedis, n.quotas.away}, {dependencyStore, n.fabric.Store.Storing}, {dependencyLedger, n.fabric.Store.Gifts.Whole}}
	out = append(out, n.hooks.needs()...)
	for _, name := range link.Followed() {
		out = append(out, dependency{name, func() error { return n.fabric.Link.Follows(name) }})
	}
	return out
}

// health answers whether this node lives, and whether it wants traffic.
type health struct {
	node     string
	began    time.Time
	needs    []dependency
	draining atomic.Bool
	seconds  *prometheus.CounterVec // served without a dependency
}

func newHealth(node string, reg prometheus.Registerer, needs ...dependency) *health {
	h := &health{node: node, began: time.Now(), needs: needs, seconds: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "liveroom_degraded_seconds_total", Help: "Time served without a dependency.",
	}, []string{"dependency"})}
	reg.MustRegister(h.seconds)
	for _, d := range needs {
		h.seconds.WithLabelValues(d.name)
	}
	return h
}

// degradedEvery is how often the degraded time is counted, so that a metric shows it within a second.
const degradedEvery = 500 * time.Millisecond

// count adds the time since the last count.
func (h *health) count(context.Context) {
	for _, name := range h.away() {
		h.seconds.WithLabelValues(name).Add(degradedEvery.Seconds())
	}
}

// away names the dependencies that do not work, never nil.
func (h *health) away() []string {
	out := []string{}
	for _, d := range h.needs {
		if d.err() != nil {
			out = append(out, d.name)
		}
	}
	return out
}

// readiness is the body of /readyz.
type readiness struct {
	Status   string   `json:"status"` // ok, degraded or draining
	Node     string   `json:"node"`
	Version  string   `json:"version"`
	Degraded []string `json:"degraded"` // what is away while the node still serves
	UptimeMS int64    `json:"uptime_ms"`
}

// register adds the health checks to the admin listener.
func (h *health) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", h.ready)
}

func (h *health) ready(w http.ResponseWriter, _ *http.Request) {
	out, status := readiness{Status: "ok", Node: h.node, Version: Version(), Degraded: h.away(), UptimeMS: time.Since(h.began).Milliseconds()}, http.StatusOK
	if len(out.Degraded) > 0 {
		out.Status = "degraded"
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

// Version says what was built, from what the Go tool recorded in the binary.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "liveserver (unknown build)"
	}
	return Built(info)
}

// Built is what [Version] says of a binary.
func Built(info *debug.BuildInfo) string {
	revision, modified := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = " " + s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				modified = " with local changes"
			}
		}
	}
	return fmt.Sprintf("liveserver %s%s%s %s", info.Main.Version, revision, modified, info.GoVersion)
}
