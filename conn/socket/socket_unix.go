//go:build unix

package socket

import (
	"errors"
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

// Readable reports whether a read would not wait.
func Readable(fd uintptr) bool {
	var b [1]byte
	_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
	return !errors.Is(err, syscall.EAGAIN)
}

// CloseWrite ends our half of the connection.
func CloseWrite(fd int) { _ = syscall.Shutdown(fd, syscall.SHUT_WR) }
