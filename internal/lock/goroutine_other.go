//go:build race && !amd64 && !arm64

package lock

import (
	"bytes"
	"runtime"
	"strconv"
)

// goroutine is the number of the running goroutine, as a stack trace has it.
func goroutine() uintptr {
	var buf [40]byte
	head := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	n, err := strconv.ParseUint(string(head[:max(bytes.IndexByte(head, ' '), 0)]), 10, 64)
	if err != nil {
		panic("lock: this runtime names goroutines otherwise: " + string(buf[:]))
	}
	return uintptr(n)
}
