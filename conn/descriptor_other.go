//go:build !unix

package conn

import (
	"net"
	"syscall"
)

// descriptor finds none here: every session takes the queue path.
func descriptor(net.Conn) (int, syscall.RawConn) { return -1, nil }

func writeFD(int, []byte) (int, error) { return 0, syscall.EAGAIN }

func readFD(int, []byte) (int, error) { return 0, syscall.EAGAIN }

func readable(uintptr) bool { return true }

func shutdownFD(int) {}
