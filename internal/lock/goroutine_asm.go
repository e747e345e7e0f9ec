//go:build race && (amd64 || arm64)

package lock

// goroutine tells the running goroutine from every other that lives: the address of its descriptor. A stack trace, which
// names it too, takes a thousand times as long.
func goroutine() uintptr
