package node

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"liveroom/internal/config"
)

// keyPair is a listener's certificate. A renewed one is taken from its files by itself: new handshakes get it, sockets stay.
type keyPair struct {
	// fixed
	files config.TLS
	log   *slog.Logger
	asks  chan struct{} // has one place

	current atomic.Pointer[tls.Certificate]

	// owned by watch
	cert, key []byte // as they were last looked at, good or not
}

// certificateEvery is how often the files are looked at.
const certificateEvery = 15 * time.Second

// loadTLS reads a listener's certificate, whose settings begin with path; nil when it speaks plain HTTP.
func loadTLS(path string, files config.TLS, log *slog.Logger) (*keyPair, error) {
	if !files.Enabled() {
		return nil, nil
	}
	c := &keyPair{files: files, log: log, asks: make(chan struct{}, 1)}
	if _, err := c.renew(false); err != nil {
		return nil, config.Fault{Path: path + ".cert", Allowed: "a PEM certificate that belongs to " + path + ".key", Received: err.Error()}
	}
	return c, nil
}

// config is for the HTTP server; nil without a certificate.
func (c *keyPair) config() *tls.Config {
	if c == nil {
		return nil
	}
	get := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil }
	return &tls.Config{GetCertificate: get, MinVersion: tls.VersionTLS12}
}

// readCertificates reads those of both listeners.
func (n *Node) readCertificates() (err error) {
	if n.certificate, err = loadTLS("tls", n.cfg.TLS, n.log); err != nil {
		return err
	}
	if n.operatorsCertificate, err = loadTLS("admin_tls", n.cfg.AdminTLS.TLS, n.log); err != nil {
		return err
	}
	n.operatorsRoots, err = roots("admin_tls.client_ca", n.cfg.AdminTLS.ClientCA)
	return err
}

// forOperators is their listener's configuration. A certificate is asked for in the handshake and judged there; that there is one
// is asked by certified, since probes of a platform show none.
func (n *Node) forOperators() *tls.Config {
	c := n.operatorsCertificate.config()
	if c != nil && n.operatorsRoots != nil {
		c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, n.operatorsRoots
	}
	return c
}

// certified lets nobody through without a certificate that was verified, but to the health checks.
func (n *Node) certified(next http.Handler) http.Handler {
	if n.operatorsRoots == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.VerifiedChains) == 0 && r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
			http.Error(w, "This listener wants a client's certificate that admin_tls.client_ca has signed.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// renew reads the files, and takes what they hold if they are not as they were, or when asked for it. What can't be used leaves
// the certificate in force.
func (c *keyPair) renew(asked bool) (changed bool, err error) {
	cert, err := os.ReadFile(c.files.Cert)
	key, keyErr := os.ReadFile(c.files.Key)
	if err == nil {
		err = keyErr
	}
	if !asked && c.current.Load() != nil && bytes.Equal(cert, c.cert) && bytes.Equal(key, c.key) {
		return false, nil
	}
	c.cert, c.key = cert, key
	if err != nil {
		return true, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return true, err
	}
	c.current.Store(&pair)
	return true, nil
}

// ask has the certificate read again, whether its files have changed or not.
func (c *keyPair) ask() {
	if c == nil {
		return
	}
	select {
	case c.asks <- struct{}{}:
	default: // it is asked for already
	}
}

// follow renews the certificate when its files change, and when asked to, until ctx ends.
func (c *keyPair) follow(ctx context.Context) {
	if c == nil {
		return
	}
	t := time.NewTicker(certificateEvery)
	defer t.Stop()
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-c.asks:
			asked = true
		case <-t.C:
		}
		switch changed, err := c.renew(asked); {
		case err != nil:
			c.log.Error("the new certificate can't be used, the one before stays", "cert", c.files.Cert, "key", c.files.Key, "err", err)
		case changed:
			leaf := c.current.Load().Leaf
			c.log.Info("certificate renewed", "serial", leaf.SerialNumber.Text(16), "until", leaf.NotAfter)
		}
	}
}
