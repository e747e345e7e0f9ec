package socket

import (
	"errors"
	"syscall"
)

// ErrWouldBlock says that nothing has come.
var ErrWouldBlock = errors.New("nothing to read yet")

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
