package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

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
	if cpus == "" {
		return nil, nil
	}
	list, err := numbers("cpus", cpus)
	if err != nil {
		return nil, err
	}
	set := &unix.CPUSet{}
	for _, c := range list {
		set.Set(c)
	}
	return set, nil
}
