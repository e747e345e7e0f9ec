package socket

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"liveroom/internal/lock"
)

// Poller waits for the input of many sockets in one epoll set, edge-triggered, so that nothing has to be armed again. Their
// descriptors are in the Go runtime's own set as well, which does no harm: each set has its own events.
type Poller[S comparable] struct {
	// fixed after construction
	set *os.File
	raw syscall.RawConn

	mu lock.Mutex[lock.Leaf]
	// guarded by mu
	sleepers []S     // by descriptor
	tickets  []int32 // by descriptor, which tell a late event for an earlier owner of it apart
	last     int32
}

// NewPoller makes an empty set; [Poller.Run] waits on it and [Poller.Close] ends it.
func NewPoller[S comparable]() (*Poller[S], error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	// A non-blocking descriptor is one that the runtime waits for, without a thread.
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("epoll: %w", err)
	}
	p := &Poller[S]{set: os.NewFile(uintptr(fd), "epoll")}
	if p.raw, err = p.set.SyscallConn(); err != nil {
		_ = p.set.Close()
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return p, nil
}

// Add reports a socket's input from now on, and what there is already. The kernel forgets the descriptor when it is closed;
// the poller must be told, see [Poller.Forget].
func (p *Poller[S]) Add(raw syscall.RawConn, s S) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(fd), Pad: p.register(int(fd), s)}
		if failed = p.control(int(fd), &ev); failed != nil {
			p.Forget(int(fd), s)
		}
	})
	return errors.Join(err, failed)
}

func (p *Poller[S]) control(fd int, ev *unix.EpollEvent) error {
	var failed error
	err := p.raw.Control(func(set uintptr) { failed = unix.EpollCtl(int(set), unix.EPOLL_CTL_ADD, fd, ev) })
	return errors.Join(err, failed)
}

func (p *Poller[S]) register(fd int, s S) (ticket int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.sleepers) <= fd {
		var none S
		p.sleepers, p.tickets = append(p.sleepers, none), append(p.tickets, 0)
	}
	p.last++
	p.sleepers[fd], p.tickets[fd] = s, p.last
	return p.last
}

// Forget lets go of who had a descriptor; another one may have it already.
func (p *Poller[S]) Forget(fd int, s S) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if fd < len(p.sleepers) && p.sleepers[fd] == s {
		var none S
		p.sleepers[fd] = none
	}
}

// Len is how many are remembered.
func (p *Poller[S]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, none := 0, *new(S)
	for _, s := range p.sleepers {
		if s != none {
			n++
		}
	}
	return n
}

// pollBatch is how many are woken between two looks at the set.
const pollBatch = 128

// Run wakes who has input, or the end of it (hangup), one after the other until the set is closed.
func (p *Poller[S]) Run(wake func(s S, hangup bool)) {
	var events [pollBatch]unix.EpollEvent
	var woken [pollBatch]S
	var none S
	n := 0
	wait := func(set uintptr) bool {
		n = look(set, &events)
		return n != 0
	}
	for p.raw.Read(wait) == nil {
		p.mu.Lock()
		for i := range events[:max(n, 0)] {
			if fd := int(events[i].Fd); fd < len(p.sleepers) && p.tickets[fd] == events[i].Pad {
				woken[i] = p.sleepers[fd]
			}
		}
		p.mu.Unlock()
		for i, s := range woken[:max(n, 0)] {
			if s != none {
				wake(s, events[i].Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0)
			}
			woken[i] = none
		}
	}
}

// look returns how many events there are right now, -1 when the set can't be asked. It never blocks, see [Write].
func look(set uintptr, events *[pollBatch]unix.EpollEvent) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, set, uintptr(unsafe.Pointer(events)), pollBatch, 0, 0, 0)
	switch errno {
	case 0:
		return int(n)
	case unix.EINTR:
		return 0
	}
	return -1
}

// Close ends Run.
func (p *Poller[S]) Close() { _ = p.set.Close() }
