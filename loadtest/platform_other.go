//go:build !linux

package main

import (
	"errors"
	"net"
	"os/exec"
	"syscall"
	"time"
)

func newReader(k *sink, _ bool) (reader, error) { return newGoroutineReader(k), nil }

func endWithUs(*syscall.SysProcAttr) {}

// descriptors is unknown here; the system says so itself when they run out.
func descriptors() int { return 1 << 20 }

func setReadBuffer(uintptr, int) error { return nil }

func sleepUntil(at time.Time) { time.Sleep(time.Until(at)) }

var errNotHere = errors.New("only Linux can measure a bare loop and bind a process to processors")

func pinSelf(cpus string) error {
	if cpus != "" {
		return errNotHere
	}
	return nil
}

func startPinned(cmd *exec.Cmd, cpus string) error {
	if cpus != "" {
		return errNotHere
	}
	return cmd.Start()
}

func writeFully(int, []byte) error { return errNotHere }

func detach(net.Conn) (int, error) { return -1, errNotHere }
