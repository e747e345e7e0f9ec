package conn

import "golang.org/x/sys/unix"

// limitUnsent bounds what the socket buffers beyond what is on its way. A kernel that can't is no reason to refuse the
// viewer: the send buffer's own bound remains.
func limitUnsent(fd, n int) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, n)
}
