package node

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/internal/certtest"
	"liveroom/internal/config"
)

// Files that change are noticed within a minute; a certificate whose key has not come yet is no reason to go without.
func TestRenewedCertificateIsNoticed(t *testing.T) {
	cert, key, _ := certtest.New(t)
	synctest.Test(t, func(t *testing.T) {
		logs := &bytes.Buffer{}
		c, err := loadTLS("tls", config.TLS{Cert: cert, Key: key}, slog.New(slog.NewTextHandler(logs, nil)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() { c.follow(ctx) })
		serial := func() int64 {
			client, server := net.Pipe()
			var both sync.WaitGroup
			both.Go(func() { _ = tls.Server(server, c.config()).HandshakeContext(ctx) })
			tc := tls.Client(client, &tls.Config{InsecureSkipVerify: true})
			if err := tc.HandshakeContext(ctx); err != nil {
				t.Fatal(err)
			}
			go client.Read(make([]byte, 4096)) // the server's last words
			both.Wait()
			client.Close()
			server.Close()
			return tc.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
		}
		old, err := os.ReadFile(key)
		if err != nil {
			t.Fatal(err)
		}
		certtest.Renew(t, cert, key, 2)
		renewed, err := os.ReadFile(key)
		if err != nil {
			t.Fatal(err)
		}
		put := func(b []byte) {
			if err := os.WriteFile(key, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		put(old)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := serial(); got != 1 {
			t.Fatalf("serial %d", got)
		}
		if n := strings.Count(logs.String(), "can't be used"); n != 1 {
			t.Fatalf("%d lines in a minute: %s", n, logs)
		}
		put(renewed)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := serial(); got != 2 {
			t.Fatalf("serial %d", got)
		}
		cancel()
		watching.Wait()
	})
}
