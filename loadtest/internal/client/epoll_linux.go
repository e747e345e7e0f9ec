package client

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

func newReader(k *sink, encrypted bool) (reader, error) {
	if encrypted {
		return newGoroutineReader(k), nil
	}
	return newEpollLoop(k)
}

// epollLoop reads all its sockets on one thread: an edge-triggered epoll set, one buffer, no goroutine per socket.
// Descriptors are closed by the loop alone, between two batches, so that a number is never reused under a read.
type epollLoop struct {
	sink *sink
	fd   int
	wake int // eventfd that ends the wait
	done chan struct{}

	table []*fdWire      // by descriptor; guarded by sink.mu
	buf   [64 << 10]byte // owned by the loop

	mu     sync.Mutex // guards orders and closed
	orders []func()   // what the loop alone may do
	closed bool
}

func newEpollLoop(k *sink) (*epollLoop, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	l := &epollLoop{sink: k, fd: fd, wake: wake, done: make(chan struct{}), table: make([]*fdWire, Descriptors())}
	if err := l.watch(unix.EPOLL_CTL_ADD, wake, unix.EPOLLIN); err != nil {
		unix.Close(fd)
		unix.Close(wake)
		return nil, err
	}
	go l.run() // close waits for done
	return l, nil
}

var _ reader = (*epollLoop)(nil)

func (l *epollLoop) watch(op, fd int, events uint32) error {
	ev := unix.EpollEvent{Events: events, Fd: int32(fd)}
	if err := unix.EpollCtl(l.fd, op, fd, &ev); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

const readEvents = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET

// adopt moves the socket out of the Go runtime's own poller, whose wake-ups would cost more than the read.
func (l *epollLoop) adopt(s *Session, conn net.Conn, early []byte) error {
	fd, err := Detach(conn)
	if err != nil {
		return err
	}
	w := &fdWire{loop: l, session: s, fd: fd}
	s.Wire = w
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	if fd >= len(l.table) {
		err = fmt.Errorf("descriptor %d is above the limit of %d", fd, len(l.table))
	} else if err = l.sink.read(s, early); err == nil {
		l.table[fd] = w
		err = l.watch(unix.EPOLL_CTL_ADD, fd, readEvents)
	}
	if err != nil {
		if fd < len(l.table) {
			l.table[fd] = nil
		}
		w.closeFD(HangUp)
	}
	return err
}

func (l *epollLoop) run() {
	defer close(l.done)
	events := make([]unix.EpollEvent, 512)
	for {
		n, err := unix.EpollWait(l.fd, events, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			panic("loadtest: epoll_wait: " + err.Error()) // the set is ours and open: only a fault here can do it
		}
		l.sink.mu.Lock()
		for i := range max(n, 0) {
			l.event(events[i])
		}
		more := l.obey()
		l.sink.mu.Unlock()
		if !more {
			return
		}
	}
}

func (l *epollLoop) event(ev unix.EpollEvent) {
	if int(ev.Fd) == l.wake {
		var b [8]byte
		_, _ = unix.Read(l.wake, b[:]) // only resets the count
		return
	}
	w := l.table[ev.Fd]
	if w == nil {
		return
	}
	if !w.frozen.Load() {
		l.read(w)
	}
}

// read takes what there is. Under EPOLLET a read that does not fill the buffer has emptied the socket (epoll(7)).
func (l *epollLoop) read(w *fdWire) {
	for w.fd >= 0 {
		n, err := unix.Read(w.fd, l.buf[:])
		switch {
		case errors.Is(err, unix.EAGAIN):
			return
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil, n == 0:
			l.drop(w, HangUp)
			return
		}
		if l.sink.read(w.session, l.buf[:n]) != nil {
			l.sink.count.Unreadable++
			l.drop(w, HangUp)
			return
		}
		if n < len(l.buf) {
			return
		}
	}
}

// drop closes the descriptor; only the loop calls it.
func (l *epollLoop) drop(w *fdWire, how Farewell) {
	if w.fd < 0 {
		return
	}
	l.table[w.fd] = nil
	w.closeFD(how)
	w.session.ended()
}

// obey carries out what was asked and reports whether the loop goes on.
func (l *epollLoop) obey() bool {
	l.mu.Lock()
	orders, closed := l.orders, l.closed
	l.orders = nil
	l.mu.Unlock()
	for _, do := range orders {
		do()
	}
	if !closed {
		return true
	}
	for _, w := range l.table {
		if w != nil {
			l.drop(w, HangUp)
		}
	}
	return false
}

// ask makes the loop do something; once it is closed, nothing.
func (l *epollLoop) ask(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.orders = append(l.orders, do)
	l.wakeUpLocked()
}

func (l *epollLoop) wakeUpLocked() {
	if !l.closed {
		_, _ = unix.Write(l.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // EAGAIN means that the loop is being woken already
	}
}

func (l *epollLoop) Close() {
	l.mu.Lock()
	l.wakeUpLocked()
	l.closed = true
	l.mu.Unlock()
	<-l.done
	unix.Close(l.fd)
	unix.Close(l.wake)
}

// fdWire is a socket of an epoll loop.
type fdWire struct {
	loop    *epollLoop
	session *Session
	frozen  atomic.Bool

	mu sync.Mutex // guards the use of fd by writers; the loop alone changes fd, holding mu
	fd int        // -1 once closed
}

var _ wire = (*fdWire)(nil)

// Write leaves what does not fit to the system's buffer: when that is full the server does not read, and what is cut in two is
// no stream any more.
func (w *fdWire) Write(frame []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd < 0 {
		return errGone
	}
	switch n, err := unix.Write(w.fd, frame); {
	case errors.Is(err, unix.EAGAIN):
		return errBacklog
	case err != nil:
		return errGone
	case n < len(frame):
		w.loop.ask(func() { w.loop.drop(w, HangUp) })
		return errBacklog
	}
	return nil
}

func (w *fdWire) end(how Farewell) {
	if how == leave && w.Write(goodbye) == nil {
		w.Freeze(false)
		return
	}
	w.frozen.Store(false)
	w.loop.ask(func() { w.loop.drop(w, how) })
}

func (w *fdWire) Freeze(frozen bool) {
	w.frozen.Store(frozen)
	if !frozen {
		w.loop.ask(func() { w.loop.read(w) })
	}
}

func (w *fdWire) closeFD(how Farewell) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd < 0 {
		return
	}
	if how == reset {
		_ = unix.SetsockoptLinger(w.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) // else it ends without a reset
	}
	unix.Close(w.fd)
	w.fd = -1
}
