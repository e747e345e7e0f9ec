//go:build !linux

package conn

// writeBothFD is [writeFD] for two pieces, the second behind the first.
func writeBothFD(fd int, p, q []byte) (int, error) {
	n, err := writeFD(fd, p)
	if n < len(p) {
		return n, err
	}
	m, err := writeFD(fd, q)
	return n + m, err
}
