package client

import (
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Descriptors is how many files this process may have open.
func Descriptors() int {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 1024
	}
	return int(min(r.Cur, 1<<20))
}

// SleepUntil waits for an instant more exactly than the runtime's timers, which round up to a millisecond while the
// process is otherwise idle.
func SleepUntil(at time.Time) {
	if d := time.Until(at); d > 0 {
		ts := unix.NsecToTimespec(int64(d))
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil) // woken early by a signal, the caller looks again
	}
}

// Detach takes the descriptor out of conn.
func Detach(conn net.Conn) (fd int, err error) {
	defer conn.Close()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return -1, err
	}
	cerr := raw.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(cerr, err)
}

// WriteFully writes frame with one write(2), with more where a signal comes between; fd blocks.
func WriteFully(fd int, frame []byte) error {
	for len(frame) > 0 {
		n, err := unix.Write(fd, frame)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		frame = frame[max(n, 0):]
	}
	return nil
}

// Blocking makes writes to fd wait for room.
func Blocking(fd int) error { return unix.SetNonblock(fd, false) }
