package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// endWithUs makes the kernel end a child when this tool is killed.
func endWithUs(child *syscall.SysProcAttr) { child.Pdeathsig = syscall.SIGKILL }

// PinSelf binds all threads of this process to the processors of a list like 0,2; "" leaves them alone.
func PinSelf(cpus string) error {
	set, err := cpuSet(cpus)
	if err != nil || set == nil {
		return err
	}
	threads, err := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		if tid, bad := strconv.Atoi(t.Name()); bad == nil && err == nil {
			err = unix.SchedSetaffinity(tid, set)
		}
	}
	return wrap(cpus, err)
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
		return wrap(cpus, err)
	}
	if err := unix.SchedSetaffinity(0, set); err != nil {
		return wrap(cpus, err)
	}
	defer unix.SchedSetaffinity(0, &before) // it was so before, so it can be so again
	return cmd.Start()
}

func wrap(cpus string, err error) error {
	if err != nil {
		return fmt.Errorf("processors %s: %w", cpus, err)
	}
	return nil
}

func cpuSet(cpus string) (*unix.CPUSet, error) {
	if cpus == "" {
		return nil, nil
	}
	set := &unix.CPUSet{}
	for c := range strings.SplitSeq(cpus, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(c))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("want processors with commas, like 0,1, have %q", cpus)
		}
		set.Set(n)
	}
	return set, nil
}
