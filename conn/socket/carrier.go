package socket

import (
	"crypto/tls"
	"io"
	"net"
)

// Carrier is the TCP connection beneath a TLS one. Its reads wait, as those of any other, until From takes their place: TLS keeps
// what it has of a record when one would wait, so that it can stop behind any byte as well.
type Carrier struct {
	net.Conn
	From io.Reader // set while nobody reads; nil: the connection itself
}

// Read implements [net.Conn].
func (c *Carrier) Read(p []byte) (int, error) {
	if c.From != nil {
		return c.From.Read(p)
	}
	return c.Conn.Read(p)
}

// Bare is the connection itself.
func (c *Carrier) Bare() net.Conn { return c.Conn }

type carrying struct{ net.Listener }

// Carry returns a listener of carriers, which TLS is laid over.
func Carry(ln net.Listener) net.Listener { return carrying{ln} }

// Accept implements [net.Listener].
func (l carrying) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &Carrier{Conn: c}, nil
}

// Beneath returns the connection below TLS and below wrappers that have done their work, and its carrier, nil where it has none.
func Beneath(nc net.Conn) (bare net.Conn, carrier *Carrier) {
	for {
		switch c := nc.(type) {
		case *tls.Conn:
			nc = c.NetConn()
		case *Carrier:
			nc, carrier = c.Conn, c
		case interface{ Bare() net.Conn }:
			nc = c.Bare()
		default:
			return nc, carrier
		}
	}
}
