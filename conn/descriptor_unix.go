//go:build unix

package conn

import (
	"errors"
	"net"
	"syscall"
)

// descriptor returns the number of a plain TCP socket, which Go keeps non-blocking. The caller must not use it after it
// has closed nc.
func descriptor(nc net.Conn) (int, bool) {
	t, ok := nc.(*net.TCPConn)
	if !ok {
		return -1, false
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return -1, false
	}
	fd := -1
	err = raw.Control(func(d uintptr) { fd = int(d) })
	return fd, err == nil && fd >= 0
}

// writeFD is one non-blocking write(2). It returns how much the kernel took, and EAGAIN when it took nothing because the
// socket is full. Go's own net.Conn.Write costs about twice as much here, for the poller's locks.
func writeFD(fd int, p []byte) (int, error) {
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

// shutdownFD ends our half of the connection.
func shutdownFD(fd int) { _ = syscall.Shutdown(fd, syscall.SHUT_WR) }
