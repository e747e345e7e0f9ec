//go:build unix

package process

import (
	"os"
	"syscall"
)

// ownGroup keeps the terminal's signals away from a child.
func ownGroup() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	endWithUs(a)
	return a
}

// Pause stops a process where it stands (SIGSTOP).
func Pause(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// Proceed lets it go on (SIGCONT).
func Proceed(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
