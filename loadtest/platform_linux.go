package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endWithUs makes the kernel end a child when this tool is killed.
func endWithUs(child *syscall.SysProcAttr) { child.Pdeathsig = syscall.SIGKILL }

// descriptors is how many files this process may have open.
func descriptors() int {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 1024
	}
	return int(min(r.Cur, 1<<20))
}

func setReadBuffer(fd uintptr, size int) error {
	return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, size)
}

// sleepUntil waits for an instant more exactly than the runtime's timers, which round up to a millisecond while the
// process is otherwise idle.
func sleepUntil(at time.Time) {
	if d := time.Until(at); d > 0 {
		ts := unix.NsecToTimespec(int64(d))
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil) // woken early by a signal, the caller looks again
	}
}

// pinSelf binds all threads of this process to the processors of a list like 0,2; "" leaves them alone.
func pinSelf(cpus string) error {
	set, err := cpuSet(cpus)
	if err != nil || set == nil {
		return err
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("load-cpus: %w", err)
	}
	for _, t := range threads {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(tid, set); err != nil {
			return fmt.Errorf("load-cpus %s: %w", cpus, err)
		}
	}
	return nil
}

// startPinned starts cmd on the processors of a list: a child inherits the affinity of the thread that forks it.
func startPinned(cmd *exec.Cmd, cpus string) error {
	set, err := cpuSet(cpus)
	if err != nil {
		return err
	}
	if set == nil {
		return cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("server-cpus: %w", err)
	}
	if err := unix.SchedSetaffinity(0, set); err != nil {
		return fmt.Errorf("server-cpus %s: %w", cpus, err)
	}
	defer unix.SchedSetaffinity(0, &before) // it was so before, so it can be so again
	return cmd.Start()
}

func cpuSet(cpus string) (*unix.CPUSet, error) {
	list, err := numbers(cpus)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	set := &unix.CPUSet{}
	for _, c := range list {
		set.Set(c)
	}
	return set, nil
}

// writeFully writes frame with one write(2), with more and a wait between them when the socket has no room.
func writeFully(fd int, frame []byte) error {
	for len(frame) > 0 {
		n, err := unix.Write(fd, frame)
		switch {
		case errors.Is(err, unix.EAGAIN):
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1); err != nil && !errors.Is(err, unix.EINTR) {
				return err
			}
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		default:
			frame = frame[max(n, 0):]
		}
	}
	return nil
}
