//go:build unix && !linux

package socket

import (
	"errors"
	"io"
	"syscall"
)

// Write is one non-blocking write(2). It returns how much the kernel took, and EAGAIN when it took nothing because the
// socket is full. Go's own net.Conn.Write costs about twice as much here, for the poller's locks.
func Write(fd int, p []byte) (int, error) {
	for {
		n, err := syscall.Write(fd, p)
		if n >= 0 && err == nil {
			return n, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return 0, err
		}
	}
}

// read is one non-blocking read(2). Like io.Reader, it returns io.EOF at the end of the stream.
func read(fd int, p []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, p)
		switch {
		case n > 0:
			return n, nil
		case n == 0 && err == nil:
			return 0, io.EOF
		case !errors.Is(err, syscall.EINTR):
			return 0, err
		}
	}
}
