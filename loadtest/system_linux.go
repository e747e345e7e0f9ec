package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// descriptors is how many files this process may have open.
func descriptors() int {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 1024
	}
	return int(min(r.Cur, 1<<20))
}

func setReadBuffer(fd uintptr, size int) error {
	return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, size)
}

// sleepUntil waits for an instant more exactly than the runtime's timers, which round up to a millisecond while the
// process is otherwise idle.
func sleepUntil(at time.Time) {
	if d := time.Until(at); d > 0 {
		ts := unix.NsecToTimespec(int64(d))
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil) // woken early by a signal, the caller looks again
	}
}
