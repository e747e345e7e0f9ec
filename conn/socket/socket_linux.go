package socket

import (
	"io"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These calls never block, so they are made without telling Go's scheduler: telling it costs little, but the first such
// call after each moment of idleness wakes the runtime's monitor thread, which then looks around every 20 µs until all is
// idle again. On a node whose rooms say something every half a millisecond that was 15 % of a core.

// Write is one non-blocking write(2). It returns how much the kernel took, and EAGAIN when it took nothing because the
// socket is full. Go's own net.Conn.Write costs about twice as much here, for the poller's locks.
func Write(fd int, p []byte) (int, error) {
	return again(unix.SYS_WRITE, fd, unsafe.Pointer(unsafe.SliceData(p)), len(p))
}

// WriteBoth is [Write] for two pieces, the second behind the first; neither is empty.
func WriteBoth(fd int, p, q []byte) (int, error) {
	pieces := [2]unix.Iovec{{Base: &p[0]}, {Base: &q[0]}}
	pieces[0].SetLen(len(p))
	pieces[1].SetLen(len(q))
	return again(unix.SYS_WRITEV, fd, unsafe.Pointer(&pieces), len(pieces))
}

// read is one non-blocking read(2). Like io.Reader, it returns io.EOF at the end of the stream.
func read(fd int, p []byte) (int, error) {
	n, err := again(unix.SYS_READ, fd, unsafe.Pointer(unsafe.SliceData(p)), len(p))
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}

// again makes a call that never blocks until no signal comes in between.
func again(trap uintptr, fd int, p unsafe.Pointer, n int) (int, error) {
	for {
		done, _, errno := unix.RawSyscall(trap, uintptr(fd), uintptr(p), uintptr(n))
		switch errno {
		case 0:
			return int(done), nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, syscall.EAGAIN // as it is, no error is made of it on the heap
		default:
			return 0, errno
		}
	}
}

// LimitUnsent bounds what the socket buffers beyond what is on its way. A kernel that can't is no reason to refuse the
// viewer: the send buffer's own bound remains.
func LimitUnsent(fd, n int) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, n)
}
