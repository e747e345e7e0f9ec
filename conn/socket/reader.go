package socket

import (
	"net"
	"syscall"
)

// ErrWouldBlock says that nothing has come. It is a [net.Error] of a moment, behind which TLS goes on.
var ErrWouldBlock net.Error = wouldBlock{}

type wouldBlock struct{}

func (wouldBlock) Error() string   { return "nothing to read yet" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

// Reader does one read that does not wait at a time, in a form that allocates nothing.
type Reader struct {
	p   []byte
	n   int
	err error
	f   func(fd uintptr) bool
}

// Init makes the zero Reader ready.
func (r *Reader) Init() {
	r.f = func(fd uintptr) bool {
		r.n, r.err = read(int(fd), r.p)
		return true
	}
}

// Read reads what has come into p, like an [io.Reader]; [ErrWouldBlock] when that is nothing. RawConn holds the descriptor
// against a close from elsewhere meanwhile, and fails when the read deadline is past.
func (r *Reader) Read(raw syscall.RawConn, p []byte) (int, error) {
	r.p, r.n, r.err = p, 0, nil
	err := raw.Read(r.f)
	r.p = nil
	switch {
	case err != nil:
		return 0, err
	case r.err == syscall.EAGAIN:
		return 0, ErrWouldBlock
	}
	return r.n, r.err
}
