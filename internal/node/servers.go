package node

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"liveroom/internal/api"
	"liveroom/internal/config"
	"liveroom/internal/site"
)

// Bounds of one HTTP request. A socket leaves them behind when it is upgraded.
const (
	headerTimeout  = 5 * time.Second
	requestTimeout = 15 * time.Second
	answerTimeout  = 30 * time.Second // a gift waits for the ledger for a few seconds
	idleTimeout    = time.Minute
	maxHeaderBytes = 16 << 10
	// profileTimeout leaves room for a profile of some minutes on the admin listener.
	profileTimeout = 10 * time.Minute
)

func newHTTPServer(h http.Handler, write time.Duration, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: write,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // what it says is about clients, not about us
	}
}

// viewerServer serves pages, API and sockets.
func viewerServer(pages *site.Site, calls *api.API, sockets http.Handler, certificate *tls.Config, log *slog.Logger) *http.Server {
	mux := http.NewServeMux()
	pages.Viewer(mux)
	mux.Handle("GET /ws", sockets)
	mux.Handle("/api/", calls.Handler())
	s := newHTTPServer(mux, answerTimeout, log)
	s.TLSConfig = certificate
	return s
}

// adminServer serves the operators' page and API, metrics, health and profiles. The command line is no profile here: it may
// hold a secret.
func adminServer(cfg config.Config, pages *site.Site, calls *api.API, h *health, reg *prometheus.Registry, log *slog.Logger) *http.Server {
	mux := http.NewServeMux()
	pages.Admin(mux)
	h.register(mux)
	mux.Handle("/api/", calls.Handler())
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError)}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.Handle("POST /debug/free", calls.ForAdmins(http.HandlerFunc(freeMemory)))
	guarded := site.Operators{Addr: cfg.AdminAddr, Hosts: cfg.AdminHosts, Origins: cfg.AllowedOrigins(), Scraped: []string{"/healthz", "/readyz", "/metrics"}}.Guard(mux)
	return newHTTPServer(guarded, profileTimeout, log)
}
