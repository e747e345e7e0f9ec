package socket

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// WriteBoth is [Write] for two pieces, the second behind the first.
func WriteBoth(fd int, p, q []byte) (int, error) {
	for {
		n, err := unix.Writev(fd, [][]byte{p, q})
		if n >= 0 && err == nil {
			return n, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return 0, err
		}
	}
}

// LimitUnsent bounds what the socket buffers beyond what is on its way. A kernel that can't is no reason to refuse the
// viewer: the send buffer's own bound remains.
func LimitUnsent(fd, n int) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, n)
}
