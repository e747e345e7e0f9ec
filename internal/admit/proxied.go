package admit

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Proxied is a listener of which the connections from proxies begin with a header of the PROXY protocol, version 2 (HAProxy,
// doc/proxy-protocol.txt), that says who the connection is of. Anybody else's word is not taken: what looks like a header from
// another address is a bad request.
type Proxied struct {
	net.Listener

	// fixed
	proxies []netip.Prefix
	log     *slog.Logger

	told atomic.Int64 // Unix seconds of the last line about a proxy that sends none
}

// NewProxied believes the proxies.
func NewProxied(ln net.Listener, proxies []netip.Prefix, log *slog.Logger) *Proxied {
	return &Proxied{Listener: ln, proxies: proxies, log: log}
}

// Accept implements [net.Listener]. The header is read by whoever reads the connection, so that a slow proxy delays nobody else.
func (p *Proxied) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if err != nil || !within(addressOf(c), p.proxies) {
		return c, err
	}
	return &proxiedConn{Conn: c, from: p}, nil
}

func within(addr netip.Addr, networks []netip.Prefix) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// proxiedConn is a proxy's connection. Its RemoteAddr is the proxy's, for it must not wait.
type proxiedConn struct {
	net.Conn
	from *Proxied

	once   sync.Once
	source netip.AddrPort // after once; zero: the proxy speaks for itself
	err    error          // after once
}

// Read implements [net.Conn] for what follows the header.
func (c *proxiedConn) Read(b []byte) (int, error) {
	c.once.Do(func() {
		if c.source, c.err = readProxyHeader(c.Conn); c.err != nil {
			c.from.tell(c.Conn.RemoteAddr(), c.err)
		}
	})
	if c.err != nil {
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: c.err} // as such net/http answers nothing to it
	}
	return c.Conn.Read(b)
}

// Bare is the connection itself, once the header is read.
func (c *proxiedConn) Bare() net.Conn { return c.Conn }

// proxyTellEvery is how often a proxy without headers is worth a line.
const proxyTellEvery = 60

// tell says that a proxy sends no header, unless it only went away, as health checks do.
func (p *Proxied) tell(proxy net.Addr, err error) {
	now, last := time.Now().Unix(), p.told.Load()
	if !errors.Is(err, errNoHeader) || now-last < proxyTellEvery || !p.told.CompareAndSwap(last, now) {
		return
	}
	p.log.Warn("connections of a trusted proxy are cut: they begin without a PROXY protocol header of version 2; have it send one, or turn proxy_protocol off",
		"proxy", proxy.String(), "err", err)
}

var errNoHeader = errors.New("no PROXY protocol header of version 2")

// proxySignature begins each header of version 2.
const proxySignature = "\r\n\r\n\x00\r\nQUIT\n"

// maxProxyHeader bounds the addresses and what else a proxy tells (TLVs are skipped); the largest in use are below 1 KiB.
const maxProxyHeader = 4 << 10

// readProxyHeader reads exactly the header. The source is zero where the proxy speaks for itself (LOCAL), or of something that is no
// TCP over IP.
func readProxyHeader(r io.Reader) (source netip.AddrPort, err error) {
	var fixed [16]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return source, err
	}
	if string(fixed[:12]) != proxySignature {
		return source, fmt.Errorf("%w, but %.12q", errNoHeader, fixed[:])
	}
	length := binary.BigEndian.Uint16(fixed[14:])
	if fixed[12]>>4 != 2 || length > maxProxyHeader {
		return source, fmt.Errorf("%w, but version %d of %d bytes", errNoHeader, fixed[12]>>4, length)
	}
	rest := make([]byte, length)
	if _, err := io.ReadFull(r, rest); err != nil {
		return source, err
	}
	const local, proxy, tcp4, tcp6 = 0, 1, 0x11, 0x21
	switch command, family := fixed[12]&0xf, fixed[13]; {
	case command == local:
		return source, nil
	case command != proxy:
		return source, fmt.Errorf("%w, but command %d", errNoHeader, command)
	case family == tcp4 && length >= 12:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(rest)), binary.BigEndian.Uint16(rest[8:])), nil
	case family == tcp6 && length >= 36:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(rest)).Unmap(), binary.BigEndian.Uint16(rest[32:])), nil
	case family == tcp4 || family == tcp6:
		return source, fmt.Errorf("%w, but %d bytes of addresses", errNoHeader, length)
	}
	return source, nil
}

type proxiedKey struct{}

// Remember implements [http.Server.ConnContext]: it keeps who stands before a connection for [Sources].
func (p *Proxied) Remember(ctx context.Context, c net.Conn) context.Context {
	if over, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = over.NetConn()
	}
	if pc, ok := c.(*proxiedConn); ok {
		return context.WithValue(ctx, proxiedKey{}, pc)
	}
	return ctx
}

// Sources lets requests come from where their proxies say.
func Sources(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(proxiedKey{}).(*proxiedConn); ok && c.source.IsValid() { // its header is read: the request came after it
			r.RemoteAddr = c.source.String()
		}
		next.ServeHTTP(w, r)
	})
}
