package conn

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
)

// upgrade is the ResponseWriter handed to coder: its Hijack keeps the connection for the session and gives coder none.
type upgrade struct {
	http.ResponseWriter
	s          *Session
	extensions string // that were negotiated; "" for none
}

var _ http.Hijacker = (*upgrade)(nil)

// WriteHeader tells the client of the extensions, when it is let in.
func (u *upgrade) WriteHeader(status int) {
	if status == http.StatusSwitchingProtocols && u.extensions != "" {
		u.Header().Set("Sec-WebSocket-Extensions", u.extensions)
	}
	u.ResponseWriter.WriteHeader(status)
}

// Hijack takes the connection from net/http and keeps what it had read ahead.
func (u *upgrade) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take the connection from net/http: %w", err)
	}
	ahead, _ := rw.Reader.Peek(rw.Reader.Buffered())
	u.s.attach(nc, append([]byte(nil), ahead...))
	none := handshaken{}
	return none, bufio.NewReadWriter(bufio.NewReaderSize(none, 0), bufio.NewWriterSize(none, 1)), nil
}

// attach gives the session its socket.
func (s *Session) attach(nc net.Conn, ahead []byte) {
	s.nc, s.fd = nc, -1
	if len(ahead) > 0 {
		s.prefix = ahead
	}
	if fd, raw := descriptor(nc); fd >= 0 {
		s.fd, s.order = fd, fd
		limitUnsent(fd, s.a.cfg.UnsentBytes)
		s.a.startPoller()
		s.raw = raw
		s.hup = s.a.poller == nil // there are no events to tell
	}
}
