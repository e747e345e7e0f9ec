package client

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ConnectTimeout bounds one dial, and one handshake.
const ConnectTimeout = 15 * time.Second

// Dialer opens upgraded sockets to a server's /ws. Safe for concurrent use.
type Dialer struct {
	Targets     []*url.URL // http or https; socket i goes to target i mod n
	Sources     int        // different loopback addresses to connect from; 1: the system's choice
	ReadBuffer  int        // receive buffer of the sockets in bytes, 0: the system's choice
	InsecureTLS bool
	Compress    bool // take deflated frames
}

// dial opens socket i.
func (d *Dialer) dial(ctx context.Context, i int) (conn net.Conn, early []byte, err error) {
	target := d.Targets[i%len(d.Targets)]
	nd := net.Dialer{Timeout: ConnectTimeout, LocalAddr: d.source(i), KeepAlive: -1}
	conn, err = nd.DialContext(ctx, "tcp", hostPort(target))
	if err != nil {
		return nil, nil, err
	}
	if d.ReadBuffer > 0 {
		err = conn.(*net.TCPConn).SetReadBuffer(d.ReadBuffer)
	}
	if target.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: target.Hostname(), InsecureSkipVerify: d.InsecureTLS, NextProtos: []string{"http/1.1"}})
	}
	if err == nil {
		early, err = handshake(conn, target, ConnectTimeout, d.Compress)
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, early, nil
}

// source is the address socket i connects from. Each lies in a /24 of its own, since limits hold per address and per
// /24, and since one address has at most some 28,000 ports towards one server.
func (d *Dialer) source(i int) net.Addr {
	if d.Sources <= 1 {
		return nil
	}
	n := i % d.Sources
	return &net.TCPAddr{IP: net.IPv4(127, byte(1+n>>8), byte(n), 1)}
}

func hostPort(u *url.URL) string {
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
}

// ParseTargets reads base addresses like http://127.0.0.1:8080, separated by commas, into those of their sockets.
func ParseTargets(bases []string) ([]*url.URL, error) {
	var out []*url.URL
	for _, base := range bases {
		u, err := url.Parse(base)
		if err != nil {
			return nil, fmt.Errorf("address %q: %w", base, err)
		}
		switch u.Scheme {
		case "ws":
			u.Scheme = "http"
		case "wss":
			u.Scheme = "https"
		}
		if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("address %q: want http://host:port or https://host", base)
		}
		if u.Path == "" {
			u.Path = "/" // else JoinPath makes a relative path
		}
		out = append(out, u.JoinPath("ws"))
	}
	return out, nil
}

// deflateOffer is what Chromium offers (RFC 7692).
const deflateOffer = "permessage-deflate; client_max_window_bits"

// Subprotocol is what the contract names.
const Subprotocol = "liveroom.v1"

// refusedError is an answer to the upgrade other than 101.
type refusedError struct{ status int }

func (e refusedError) Error() string {
	return fmt.Sprintf("the upgrade was refused with status %d", e.status)
}

// handshake upgrades conn (RFC 6455, section 4.1) and returns the bytes that came behind the answer. deflate asks for
// permessage-deflate, and fails without.
func handshake(conn net.Conn, target *url.URL, timeout time.Duration, deflate bool) (early []byte, err error) {
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	var nonce [16]byte
	rand.Read(nonce[:])
	key := base64.StdEncoding.EncodeToString(nonce[:])
	extensions := ""
	if deflate {
		extensions = "Sec-WebSocket-Extensions: " + deflateOffer + "\r\n"
	}
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: %s\r\n%s\r\n",
		target.RequestURI(), target.Host, key, Subprotocol, extensions)
	if err != nil {
		return nil, err
	}
	br := bufio.NewReaderSize(conn, 1024)
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		return nil, err
	}
	if err := checkUpgrade(resp, key, deflate); err != nil {
		return nil, err
	}
	early, _ = br.Peek(br.Buffered())
	return early, conn.SetDeadline(time.Time{})
}

// AcceptGUID is what a server hashes behind the key (RFC 6455, section 1.3).
const AcceptGUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

func checkUpgrade(resp *http.Response, key string, deflate bool) error {
	sum := sha1.Sum([]byte(key + AcceptGUID))
	extensions := resp.Header.Get("Sec-WebSocket-Extensions")
	switch {
	case resp.StatusCode != http.StatusSwitchingProtocols:
		return refusedError{resp.StatusCode}
	case resp.Header.Get("Sec-WebSocket-Accept") != base64.StdEncoding.EncodeToString(sum[:]):
		return errors.New("the answer's Sec-WebSocket-Accept is wrong")
	case !strings.EqualFold(resp.Header.Get("Sec-WebSocket-Protocol"), Subprotocol):
		return fmt.Errorf("the server did not select %s", Subprotocol)
	case deflate && !strings.Contains(extensions, "permessage-deflate"), deflate && !strings.Contains(extensions, "server_no_context_takeover"):
		return fmt.Errorf("the server did not agree to permessage-deflate in a way that lets viewers share what one of them inflates: it answered %q", extensions)
	}
	return nil
}
