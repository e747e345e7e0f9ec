package node

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"liveroom/internal/config"
)

// keyPair is the main listener's certificate. A renewed one is taken from its files by itself: new handshakes get it, sockets stay.
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

// loadTLS reads the main listener's certificate; nil when it speaks plain HTTP.
func loadTLS(files config.TLS, log *slog.Logger) (*keyPair, error) {
	if !files.Enabled() {
		return nil, nil
	}
	c := &keyPair{files: files, log: log, asks: make(chan struct{}, 1)}
	if _, err := c.renew(false); err != nil {
		return nil, config.Fault{Path: "tls.cert", Allowed: "a PEM certificate that belongs to tls.key", Received: err.Error()}
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
