//go:build !linux

package process

import (
	"errors"
	"os/exec"
	"syscall"
)

var errNotBound = errors.New("only Linux can bind a process to processors")

func endWithUs(*syscall.SysProcAttr) {}

func PinSelf(cpus string) error {
	if cpus != "" {
		return errNotBound
	}
	return nil
}

func startPinned(cmd *exec.Cmd, cpus string) error {
	if cpus != "" {
		return errNotBound
	}
	return cmd.Start()
}
