//go:build !linux

package socket

// WriteBoth is [Write] for two pieces, the second behind the first.
func WriteBoth(fd int, p, q []byte) (int, error) {
	n, err := Write(fd, p)
	if n < len(p) {
		return n, err
	}
	m, err := Write(fd, q)
	return n + m, err
}

// LimitUnsent can't bound here what the socket buffers: the send buffer's own bound remains.
func LimitUnsent(int, int) {}
