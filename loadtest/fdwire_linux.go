package main

import (
	"errors"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// fdWire is a socket of an epoll loop.
type fdWire struct {
	loop    *epollLoop
	session *session
	frozen  atomic.Bool

	mu  sync.Mutex // guards out and the use of fd by writers; the loop alone changes fd, holding mu
	fd  int        // -1 once closed
	out []byte     // what the socket did not take
}

var _ wire = (*fdWire)(nil)

func (w *fdWire) write(frame []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.fd < 0:
		return errGone
	case len(w.out)+len(frame) > maxBacklog:
		return errBacklog
	case len(w.out) > 0:
		w.out = append(w.out, frame...)
		return nil
	}
	n, err := unix.Write(w.fd, frame)
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		return errGone
	}
	if n = max(n, 0); n < len(frame) {
		w.out = append(w.out, frame[n:]...)
		return w.loop.watch(unix.EPOLL_CTL_MOD, w.fd, readEvents|unix.EPOLLOUT)
	}
	return nil
}

// flush sends what waits; the loop calls it when the socket has room.
func (w *fdWire) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd < 0 || len(w.out) == 0 {
		return
	}
	n, err := unix.Write(w.fd, w.out)
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		return // the read side finds out
	}
	w.out = w.out[:copy(w.out, w.out[max(n, 0):])]
	if len(w.out) == 0 {
		w.out = nil
		_ = w.loop.watch(unix.EPOLL_CTL_MOD, w.fd, readEvents) // at worst one needless wake-up more
	}
}

func (w *fdWire) end(how farewell) {
	w.frozen.Store(false)
	if how == leave && w.write(appendClientFrame(nil, opClose, 0, []byte{0x03, 0xe8})) == nil { // 1000
		w.loop.ask(order{wire: w, read: true})
		return
	}
	w.loop.ask(order{wire: w, how: how})
}

func (w *fdWire) freeze(frozen bool) {
	w.frozen.Store(frozen)
	if !frozen {
		w.loop.ask(order{wire: w, read: true})
	}
}

func (w *fdWire) closeFD(how farewell) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd < 0 {
		return
	}
	if how == reset {
		_ = unix.SetsockoptLinger(w.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) // else it ends without a reset
	}
	unix.Close(w.fd)
	w.fd, w.out = -1, nil
}
