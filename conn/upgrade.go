package conn

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
)

// Sizes of the buffers of one session. A danmaku fits the read buffer; the write buffer must hold the longest control
// frame (2 + 125 bytes), so that coder flushes each of them in one write.
const (
	readBufferBytes  = 512
	writeBufferBytes = 128
)

// upgrade is the ResponseWriter handed to coder: its Hijack gives the session as the connection, and small buffers, which
// coder uses as they are, in place of net/http's of 4 KiB each.
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
	w := (*wire)(u.s)
	return w, bufio.NewReadWriter(bufio.NewReaderSize(w, readBufferBytes), bufio.NewWriterSize(w, writeBufferBytes)), nil
}

// attach gives the session its socket.
func (s *Session) attach(nc net.Conn, ahead []byte) {
	s.nc, s.fd = nc, -1
	if len(ahead) > 0 {
		s.prefix = ahead
	}
	if fd, ok := descriptor(nc); ok {
		s.fd, s.order = fd, fd
		limitUnsent(fd, s.a.cfg.UnsentBytes)
	}
}
