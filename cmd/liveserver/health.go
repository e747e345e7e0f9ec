package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"liveroom/internal/config"
)

// healthTimeout is how long the server may take to answer; container engines and supervisors ask every few seconds.
const healthTimeout = 3 * time.Second

// health asks the server of this configuration, which runs on this machine, and fails unless it says yes. So a container needs
// no other program to be looked after.
func health(ctx context.Context, args []string, stdout io.Writer, environ []string) error {
	path := "/healthz"
	cfg, err := config.Load(args, environ, func(set *flag.FlagSet) {
		set.BoolFunc("ready", "", func(string) error { path = "/readyz"; return nil })
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	addr := loopback(cfg.AdminAddr)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme(cfg.AdminTLS.TLS)+addr+path, nil)
	if err != nil {
		return err
	}
	res, err := (&http.Client{Transport: localRoad()}).Do(req)
	if err != nil {
		return fmt.Errorf("no server answers at %s: %w", addr, err)
	}
	defer res.Body.Close()
	said, err := io.ReadAll(io.LimitReader(res.Body, 4<<10))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", addr, res.Status, strings.TrimSpace(string(said)))
	}
	_, err = stdout.Write(said)
	return err
}

// localRoad leads to a server on this machine: no proxy of the environment stands between, nor anybody who could show another
// certificate.
func localRoad() *http.Transport {
	return &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
}

// loopback is where a server that listens on addr is reached from its own machine.
func loopback(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip == netip.IPv4Unspecified() {
		host = "127.0.0.1"
	} else if err == nil && ip == netip.IPv6Unspecified() {
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}
