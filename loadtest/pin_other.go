//go:build !linux

package main

import (
	"errors"
	"os/exec"
)

func pinSelf(cpus string) error {
	if cpus != "" {
		return errors.New("load-cpus: only Linux can bind a process to processors")
	}
	return nil
}

func startPinned(cmd *exec.Cmd, cpus string) error {
	if cpus != "" {
		return errors.New("server-cpus: only Linux can bind a process to processors")
	}
	return cmd.Start()
}
