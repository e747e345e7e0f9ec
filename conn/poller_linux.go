package conn

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// poller waits for the input of sessions that rest, all of them in one epoll set, edge-triggered, so that nothing has to be
// armed again. Their descriptors are in the Go runtime's own set as well, which does no harm: each set has its own events.
type poller struct {
	// fixed after construction
	set *os.File
	raw syscall.RawConn

	mu sync.Mutex // a leaf
	// guarded by mu
	sessions []*Session // by descriptor
	tickets  int32
}

// newPoller makes an empty set; run waits on it and close ends it.
func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	// A non-blocking descriptor is one that the runtime waits for, without a thread.
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("epoll: %w", err)
	}
	p := &poller{set: os.NewFile(uintptr(fd), "epoll")}
	if p.raw, err = p.set.SyscallConn(); err != nil {
		_ = p.set.Close()
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return p, nil
}

// add reports a session's input from now on, and what there is already. The kernel forgets the descriptor when it is closed.
func (p *poller) add(s *Session) error {
	var failed error
	err := s.raw.Control(func(fd uintptr) {
		ticket := p.register(int(fd), s)
		ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(fd), Pad: ticket}
		failed = p.control(int(fd), &ev)
	})
	return errors.Join(err, failed)
}

func (p *poller) control(fd int, ev *unix.EpollEvent) error {
	var failed error
	err := p.raw.Control(func(set uintptr) { failed = unix.EpollCtl(int(set), unix.EPOLL_CTL_ADD, fd, ev) })
	return errors.Join(err, failed)
}

// register gives a session a ticket, by which a late event for an earlier owner of the same descriptor is told apart.
func (p *poller) register(fd int, s *Session) int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.sessions) <= fd {
		p.sessions = append(p.sessions, nil)
	}
	p.tickets++
	p.sessions[fd], s.ticket = s, p.tickets
	return s.ticket
}

// forget lets go of a session whose socket is closed; another one may have its descriptor already.
func (p *poller) forget(s *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.order < len(p.sessions) && p.sessions[s.order] == s {
		p.sessions[s.order] = nil
	}
}

// pollBatch is how many sessions are woken between two looks at the set.
const pollBatch = 128

// run wakes sessions until the set is closed, each when ready returns.
func (p *poller) run(ready func()) {
	var events [pollBatch]unix.EpollEvent
	var woken [pollBatch]*Session
	n := 0
	wait := func(set uintptr) bool {
		var err error
		n, err = unix.EpollWait(int(set), events[:], 0)
		return n > 0 || err != nil && err != unix.EINTR
	}
	for p.raw.Read(wait) == nil {
		p.mu.Lock()
		for i := range events[:max(n, 0)] {
			woken[i] = nil
			if fd := int(events[i].Fd); fd < len(p.sessions) && p.sessions[fd] != nil && p.sessions[fd].ticket == events[i].Pad {
				woken[i] = p.sessions[fd]
			}
		}
		p.mu.Unlock()
		for i, s := range woken[:max(n, 0)] {
			if s != nil {
				ready()
				s.arrived(events[i].Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0)
			}
			woken[i] = nil
		}
	}
}

// close ends run.
func (p *poller) close() { _ = p.set.Close() }
