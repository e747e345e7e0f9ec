//go:build unix

package main

import (
	"os"
	"syscall"
)

// pause stops a process where it stands (SIGSTOP).
func pause(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// proceed lets it go on (SIGCONT).
func proceed(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
