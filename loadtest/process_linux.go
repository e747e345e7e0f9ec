package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// clockTick is the unit of the times in /proc: USER_HZ, which Linux has fixed at 100 for user space (proc(5), time(7)).
const clockTick = 100.0

// readProcess reads /proc/PID/status and /proc/PID/stat.
func readProcess(pid int) (process, error) {
	var p process
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return p, err
	}
	rss, ok := kilobytes(status, "VmRSS:")
	if !ok {
		return p, errors.New("it has ended")
	}
	p.memory = rss
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, err
	}
	// The second field is the command in parentheses, which may hold anything; utime and stime are the 14th and 15th.
	i := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[i+1:]))
	if i < 0 || len(fields) < 13 {
		return p, errors.New("/proc/PID/stat has an unknown form")
	}
	for _, f := range fields[11:13] {
		ticks, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return p, err
		}
		p.cpu += ticks / clockTick
	}
	return p, nil
}

// processTime is the processor time of a process in seconds, to the nanosecond: the first field of its threads'
// /proc/PID/task/TID/schedstat. That of threads that have ended is not in it; the Go runtime keeps its threads.
func processTime(pid int) (float64, error) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, t := range tasks {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, t.Name()))
		if err != nil {
			continue // it has ended
		}
		field, _, _ := strings.Cut(string(b), " ")
		ns, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, errors.New("/proc/PID/task/TID/schedstat has an unknown form")
		}
		sum += ns / 1e9
	}
	return sum, nil
}

func kilobytes(status []byte, key string) (float64, bool) {
	_, rest, ok := bytes.Cut(status, []byte("\n"+key))
	if !ok {
		return 0, false
	}
	fields := strings.Fields(string(rest[:min(len(rest), 64)]))
	if len(fields) == 0 {
		return 0, false
	}
	n, err := strconv.ParseFloat(fields[0], 64)
	return n * 1024, err == nil
}

// selfCPU is the processor time of this process in seconds.
func selfCPU() float64 {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

// machineCPU is the processor time that all processes have spent, in seconds.
func machineCPU() float64 {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal …
	sum := 0.0
	for i, f := range fields {
		if i == 0 || i == 4 || i == 5 || i > 7 {
			continue
		}
		ticks, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return 0
		}
		sum += ticks / clockTick
	}
	return sum
}

// machine names the kernel and the processor, and says how busy they are.
func machine() (kernel, cpu, load string) {
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		load = strings.Join(strings.Fields(string(b))[:3], " ")
	}
	b, _ := os.ReadFile("/proc/cpuinfo")
	if _, rest, ok := strings.Cut(string(b), "model name"); ok {
		line, _, _ := strings.Cut(rest, "\n")
		cpu = strings.TrimSpace(strings.TrimLeft(line, "\t: "))
	}
	return kernel, cpu, load
}
