package conn

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// writeBothFD is [writeFD] for two pieces, the second behind the first.
func writeBothFD(fd int, p, q []byte) (int, error) {
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
