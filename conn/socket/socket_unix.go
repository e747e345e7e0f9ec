//go:build unix

package socket

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// Descriptor returns the number of a plain TCP socket, which Go keeps non-blocking, and guarded access to it; -1, nil for
// any other connection. The caller must not use the number after it has closed nc.
func Descriptor(nc net.Conn) (int, syscall.RawConn) {
	t, ok := nc.(*net.TCPConn)
	if !ok {
		return -1, nil
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return -1, nil
	}
	fd := -1
	if err := raw.Control(func(d uintptr) { fd = int(d) }); err != nil || fd < 0 {
		return -1, nil
	}
	return fd, raw
}

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

// Readable reports whether a read would not wait.
func Readable(fd uintptr) bool {
	var b [1]byte
	_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
	return !errors.Is(err, syscall.EAGAIN)
}

// CloseWrite ends our half of the connection.
func CloseWrite(fd int) { _ = syscall.Shutdown(fd, syscall.SHUT_WR) }
