package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"liveroom/conn/socket"
	"liveroom/docs"
	"liveroom/internal/admit"
	"liveroom/internal/api"
	"liveroom/internal/config"
	"liveroom/internal/signin"
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

// port is a listener and the server behind it. A node has one for viewers and one for operators.
type port struct {
	ln net.Listener // plain; TLS is laid over it by the server
	*http.Server
	serving sync.WaitGroup
}

// openPort listens on an address of the configuration, whose path is told when it can't. The server has no handler yet.
func openPort(path, addr string, answer time.Duration, log *slog.Logger) (*port, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		received := addr + ": " + err.Error()
		if errors.Is(err, syscall.EADDRINUSE) {
			received = addr + ", which another process is using"
		}
		return nil, config.Fault{Path: path, Allowed: "an address that is free to listen on", Received: received}
	}
	return &port{ln: ln, Server: &http.Server{
		ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: answer, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // what it says is about clients, not about us
	}}, nil
}

// listen opens both ports.
func (n *Node) listen() (err error) {
	if n.viewers, err = openPort("addr", n.cfg.Addr, answerTimeout, n.log); err != nil {
		return err
	}
	n.closers.add("close the listener", 0, func(context.Context) error { n.viewers.end(); return nil })
	if n.operators, err = openPort("admin_addr", n.cfg.AdminAddr, profileTimeout, n.log); err != nil {
		return err
	}
	n.closers.add("end the admin listener", closeTimeout, func(ctx context.Context) error {
		defer n.operators.end()
		return n.operators.Shutdown(ctx)
	})
	return nil
}

// keepDoors puts a doorkeeper before each server. Everything else that needs descriptors from the start is open by now.
func (n *Node) keepDoors(reg *prometheus.Registry) {
	a := admit.Allot()
	a.Tell(n.log, n.cfg.Sessions.Max)
	refused := admit.RefusedConnections(reg)
	if n.viewers.TLSConfig != nil {
		n.viewers.ln = socket.Carry(n.viewers.ln)
	}
	viewers := admit.NewDoorkeeper(n.viewers.ln, a.Viewers, "main", refused, n.log)
	viewers.Among(n.acceptor.Sockets, n.cfg.TrustedProxies)
	operators := admit.NewDoorkeeper(n.operators.ln, a.Admin, "admin", refused, n.log)
	n.viewers.ln, n.viewers.ConnState = viewers, viewers.Track
	if n.cfg.ProxyProtocol {
		proxied := admit.NewProxied(viewers, n.cfg.TrustedProxies, n.log)
		n.viewers.ln, n.viewers.ConnContext, n.viewers.Handler = proxied, proxied.Remember, admit.Sources(n.viewers.Handler)
	}
	n.operators.ln, n.operators.ConnState = operators, operators.Track
}

// serve serves a port until its server is shut down.
func (n *Node) serve(p *port) {
	p.serving.Go(func() {
		var err error
		if p.TLSConfig != nil {
			err = p.ServeTLS(p.ln, "", "")
		} else {
			err = p.Serve(p.ln)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			n.failed <- fmt.Errorf("serve %s: %w", p.ln.Addr(), err)
		}
	})
}

// end waits for the server, which is shut down, or was never begun and has left the listener open.
func (p *port) end() {
	_ = p.ln.Close() // most often it is closed
	p.serving.Wait()
}

// viewersMux has pages, API and sockets.
func viewersMux(pages *site.Site, calls *api.API, sockets http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	pages.Viewer(mux)
	mux.Handle("GET /ws", sockets)
	mux.HandleFunc("GET "+description, describe)
	mux.Handle("/api/", calls.Handler())
	return mux
}

// description is where the API describes itself.
const description = api.Prefix + "/openapi.yaml"

func describe(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/yaml") // RFC 9512
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Access-Control-Allow-Origin", "*") // it is the same for everybody, and public
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(docs.OpenAPI))
}

// operatorsMux has the operators' page and API, metrics, health and profiles. The command line is no profile here: it may
// hold a secret.
func operatorsMux(n *Node, pages *site.Site, calls *api.API, reg *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	pages.Admin(mux)
	n.health.register(mux)
	mux.HandleFunc("GET "+description, describe)
	mux.Handle("/api/", calls.Handler())
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(n.log.Handler(), slog.LevelError)}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.Handle("POST /debug/free", calls.ForAdmins(http.HandlerFunc(freeMemory)))
	mux.Handle("POST "+BackupPath, calls.ForAdmins(http.HandlerFunc(n.backUp)))
	n.entrance.Register(mux)
	o := site.Operators{
		Addr: n.cfg.AdminAddr, Hosts: n.cfg.AdminHosts, Origins: n.cfg.AllowedOrigins(), Scraped: []string{"/healthz", "/readyz", "/metrics"}, Returns: signin.CallbackPath,
	}
	if own, err := url.Parse(n.cfg.AdminOIDC.URL); err == nil && own.Host != "" {
		o.Hosts, o.Origins = append(slices.Clone(o.Hosts), own.Hostname()), append(slices.Clone(o.Origins), n.cfg.AdminOIDC.URL)
	}
	return o.Guard(n.entrance.Signed(mux))
}

// openEntrance makes where operators sign in. The provider is not asked before somebody does.
func (n *Node) openEntrance(secret string) (*signin.Entrance, error) {
	o := n.cfg.AdminOIDC
	return signin.New(signin.Config{
		Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: o.ClientSecret, URL: o.URL, Scopes: o.Scopes, Claim: o.Claim,
		Admins: o.Admins, Moderators: o.Moderators, Readers: o.Readers, Secret: secret, Leeway: n.cfg.Auth.Leeway,
		Revoked: n.revoked.Revoked, Revoke: n.fabric.Store.Revoked.Revoke, As: api.As, Log: n.log,
	})
}
