package main

import (
	"errors"

	"golang.org/x/sys/unix"
)

// writeFully writes frame with one write(2), with more and a wait between them when the socket has no room.
func writeFully(fd int, frame []byte) error {
	for len(frame) > 0 {
		n, err := unix.Write(fd, frame)
		switch {
		case errors.Is(err, unix.EAGAIN):
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1); err != nil && !errors.Is(err, unix.EINTR) {
				return err
			}
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		default:
			frame = frame[max(n, 0):]
		}
	}
	return nil
}
