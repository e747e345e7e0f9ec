package process

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/prometheus/procfs"
)

// Where there is no /proc, as on all systems but Linux, what stands in it is unknown: errors and zeros.

// Usage is what the system says of one process.
type Usage struct {
	Memory float64 // resident, bytes
	Cpu    float64 // user and system, seconds since its start
}

func Read(pid int) (Usage, error) {
	if runtime.GOOS != "linux" {
		return Usage{}, errors.New("only Linux shows another process' memory here: leave -pid out, the metrics say it too")
	}
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, err
	}
	status, err := p.NewStatus()
	if err != nil {
		return Usage{}, err
	}
	if status.VmRSS == 0 {
		return Usage{}, errors.New("it has ended")
	}
	stat, err := p.Stat()
	return Usage{Memory: float64(status.VmRSS), Cpu: stat.CPUTime()}, err
}

// cpuTime is the processor time of a process in seconds, to the nanosecond: the sum of its threads' schedstat. That of
// threads that have ended is not in it; the Go runtime keeps its threads.
func cpuTime(pid int) (float64, error) {
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

// Timed is the processor time that a process spends in f, in seconds.
func Timed(pid int, f func() error) (float64, error) {
	before, err := cpuTime(pid)
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := cpuTime(pid)
	return after - before, err
}

// SelfCPU is the processor time of this process in seconds.
func SelfCPU() float64 {
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

// MachineCPU is the processor time that all processes have spent, in seconds.
func MachineCPU() float64 {
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

// Machine names the kernel and the processor, and says how busy they are.
func Machine() (kernel, cpu, load string) {
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
		cpu = strings.TrimLeft(line, "\t: ")
	}
	if l, err := fs.LoadAvg(); err == nil {
		load = fmt.Sprintf("%.2f %.2f %.2f", l.Load1, l.Load5, l.Load15)
	}
	return kernel, cpu, load
}
