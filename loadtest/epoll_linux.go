package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

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

	table []atomic.Pointer[fdWire] // by descriptor
	buf   [64 << 10]byte           // owned by the loop

	mu     sync.Mutex // guards orders and closing
	orders []order
	closed bool
}

// order asks the loop for what it alone may do.
type order struct {
	wire *fdWire
	how  farewell
	read bool // resume reading instead of ending
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
	l := &epollLoop{sink: k, fd: fd, wake: wake, done: make(chan struct{}), table: make([]atomic.Pointer[fdWire], descriptors())}
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
func (l *epollLoop) adopt(s *session, conn net.Conn, early []byte) error {
	fd, err := detach(conn)
	if err != nil {
		return err
	}
	w := &fdWire{loop: l, session: s, fd: fd}
	s.wire = w
	if len(early) > 0 {
		l.sink.mu.Lock()
		err = l.sink.read(s, early)
		l.sink.mu.Unlock()
	}
	if err == nil && fd >= len(l.table) {
		err = fmt.Errorf("descriptor %d is above the limit of %d", fd, len(l.table))
	}
	if err == nil {
		l.table[fd].Store(w)
		err = l.watch(unix.EPOLL_CTL_ADD, fd, readEvents)
	}
	if err != nil {
		if fd < len(l.table) {
			l.table[fd].Store(nil)
		}
		w.closeFD(hangUp)
		return err
	}
	return nil
}

// detach takes the descriptor out of conn.
func detach(conn net.Conn) (int, error) {
	defer conn.Close()
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return -1, fmt.Errorf("%T has no descriptor", conn)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd := -1
	cerr := raw.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(cerr, err)
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
	w := l.table[ev.Fd].Load()
	if w == nil {
		return
	}
	if ev.Events&unix.EPOLLOUT != 0 {
		w.flush()
	}
	if ev.Events&^unix.EPOLLOUT != 0 && !w.frozen.Load() {
		l.read(w)
	}
}

// read takes what there is. Under EPOLLET a read that does not fill the buffer has emptied the socket (epoll(7)).
func (l *epollLoop) read(w *fdWire) {
	for {
		n, err := unix.Read(w.fd, l.buf[:])
		switch {
		case errors.Is(err, unix.EAGAIN):
			return
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil, n == 0:
			l.drop(w, hangUp)
			return
		}
		if l.sink.read(w.session, l.buf[:n]) != nil {
			l.sink.count.unreadable++
			l.drop(w, hangUp)
			return
		}
		if n < len(l.buf) {
			return
		}
	}
}

// drop closes the descriptor; only the loop calls it.
func (l *epollLoop) drop(w *fdWire, how farewell) {
	if w.fd < 0 {
		return
	}
	l.table[w.fd].Store(nil)
	w.closeFD(how)
	w.session.ended()
}

// obey carries out what was asked and reports whether the loop goes on.
func (l *epollLoop) obey() bool {
	l.mu.Lock()
	orders, closed := l.orders, l.closed
	l.orders = nil
	l.mu.Unlock()
	for _, o := range orders {
		switch {
		case o.wire.fd < 0:
		case o.read:
			l.read(o.wire)
		default:
			l.drop(o.wire, o.how)
		}
	}
	if !closed {
		return true
	}
	for i := range l.table {
		if w := l.table[i].Load(); w != nil {
			l.drop(w, hangUp)
		}
	}
	return false
}

func (l *epollLoop) ask(o order) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.orders = append(l.orders, o)
	l.wakeUpLocked()
}

func (l *epollLoop) wakeUpLocked() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(l.wake, one[:]) // EAGAIN means that the loop is being woken already
}

func (l *epollLoop) close() {
	l.mu.Lock()
	l.closed = true
	l.wakeUpLocked()
	l.mu.Unlock()
	<-l.done
	unix.Close(l.fd)
	unix.Close(l.wake)
}

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
