package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/prometheus/procfs"
)

// Where there is no /proc, as on all systems but Linux, what stands in it is unknown: errors and zeros.

// process is what the system says of one process.
type process struct {
	memory float64 // resident, bytes
	cpu    float64 // user and system, seconds since its start
}

func readProcess(pid int) (process, error) {
	if runtime.GOOS != "linux" {
		return process{}, errors.New("only Linux shows another process' memory here: leave -pid out, the metrics say it too")
	}
	p, err := procfs.NewProc(pid)
	if err != nil {
		return process{}, err
	}
	status, err := p.NewStatus()
	if err != nil {
		return process{}, err
	}
	if status.VmRSS == 0 {
		return process{}, errors.New("it has ended")
	}
	stat, err := p.Stat()
	return process{memory: float64(status.VmRSS), cpu: stat.CPUTime()}, err
}

// processTime is the processor time of a process in seconds, to the nanosecond: the sum of its threads' schedstat. That of
// threads that have ended is not in it; the Go runtime keeps its threads.
func processTime(pid int) (float64, error) {
	threads, err := procfs.AllThreads(pid)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, t := range threads {
		if s, err := t.Schedstat(); err == nil { // else it has ended
			sum += float64(s.RunningNanoseconds) / 1e9
		}
	}
	if sum == 0 {
		return 0, fmt.Errorf("/proc/%d/task/*/schedstat tells nothing", pid)
	}
	return sum, nil
}

// timed is the processor time that the one node under test spends in f, in seconds.
func (b *bench) timed(f func() error) (float64, error) {
	before, err := processTime(b.o.pids[0])
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := processTime(b.o.pids[0])
	return after - before, err
}

// oneNode refuses a scenario that looks at one node's processor time when there is not exactly one.
func (b *bench) oneNode() error {
	if len(b.o.pids) != 1 {
		return fmt.Errorf("%s looks at the processor time of one node: give -spawn 1, or -pid with -url", b.o.scenario.name)
	}
	return nil
}

// selfCPU is the processor time of this process in seconds.
func selfCPU() float64 {
	p, err := procfs.Self()
	if err != nil {
		return 0
	}
	stat, err := p.Stat()
	if err != nil {
		return 0
	}
	return stat.CPUTime()
}

// machineCPU is the processor time that all processes have spent, in seconds.
func machineCPU() float64 {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	stat, err := fs.Stat()
	if err != nil {
		return 0
	}
	c := stat.CPUTotal
	return c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ
}

// machine names the kernel and the processor, and says how busy they are.
func machine() (kernel, cpu, load string) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return "", "", ""
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = strings.TrimSpace(string(b))
	}
	b, _ := os.ReadFile("/proc/cpuinfo") // procfs reads it on Linux alone
	if _, rest, ok := strings.Cut(string(b), "model name"); ok {
		line, _, _ := strings.Cut(rest, "\n")
		cpu = strings.TrimSpace(strings.TrimLeft(line, "\t: "))
	}
	if l, err := fs.LoadAvg(); err == nil {
		load = fmt.Sprintf("%.2f %.2f %.2f", l.Load1, l.Load5, l.Load15)
	}
	return kernel, cpu, load
}

// moreProcs gives the Go scheduler a P for each reader and some more, even on one processor. A reader sits in
// epoll_wait with its P; on GOMAXPROCS(1) the speaker would wait up to 10 ms until the runtime takes that P away.
func moreProcs(readers int) (restore func()) {
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(max(before, readers+4))
	return func() { runtime.GOMAXPROCS(before) }
}
