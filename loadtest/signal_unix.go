//go:build unix

package main

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

// pause stops a process where it stands (SIGSTOP).
func pause(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// proceed lets it go on (SIGCONT).
func proceed(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
