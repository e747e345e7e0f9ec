package main

import "syscall"

// ownGroup keeps the terminal's signals away from a child, and ends it when this tool is killed.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
