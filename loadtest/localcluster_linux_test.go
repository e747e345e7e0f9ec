package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"liveroom/loadtest/internal/process"
)

// output collects what is written and tells of each line. Safe for concurrent use.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer // guarded by mu
	wrote chan struct{}
}

func newOutput() *output { return &output{wrote: make(chan struct{}, 1)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	select {
	case o.wrote <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// until waits for text in the output.
func (o *output) until(t *testing.T, text string) {
	t.Helper()
	for end := time.After(2 * time.Minute); !strings.Contains(o.String(), text); {
		select {
		case <-o.wrote:
		case <-end:
			t.Fatalf("no %q in\n%s", text, o)
		}
	}
}

// awaitEnds waits until none of the processes is there.
func awaitEnds(t *testing.T, pids []int) {
	t.Helper()
	end, tick := time.After(time.Minute), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for _, pid := range pids {
		for syscall.Kill(pid, 0) == nil && !defunct(pid) {
			select {
			case <-tick.C:
			case <-end:
				t.Fatalf("process %d is still there", pid)
			}
		}
	}
}

// defunct reports whether a process has ended and only waits for somebody to ask how.
func defunct(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// descendants are the processes whose parent is pid (/proc/PID/task/TID/children).
func descendants(t *testing.T, pid int) (out []int) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(tasks) == 0 {
		t.Fatalf("no children of %d to be seen: %v", pid, err)
	}
	for _, task := range tasks {
		list, err := os.ReadFile(task)
		if err != nil {
			continue // a thread that has ended meanwhile
		}
		for _, f := range strings.Fields(string(list)) {
			n, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, n)
		}
	}
	return out
}

// startCluster starts the command in a process of its own, in a temporary directory of its own.
func startCluster(t *testing.T, nodes string) (cmd *exec.Cmd, out *output, temp string) {
	t.Helper()
	temp, out = t.TempDir(), newOutput()
	cmd = exec.Command(os.Args[0], "cluster", "-nodes", nodes, "-port", "0", "-admin-port", "0", "-server", liveserver(t))
	cmd.Env = append(os.Environ(), process.ChildVariable+"=1", "TMPDIR="+temp)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	out.until(t, "Ctrl-C stops all of it")
	return cmd, out, temp
}

var processLine = regexp.MustCompile(`process +(\d+)`)

func TestAClusterIsThreeNodesAndAnInterruptEndsAllOfIt(t *testing.T) {
	t.Parallel()
	cmd, out, temp := startCluster(t, "3")
	children := descendants(t, cmd.Process.Pid)
	pages := regexp.MustCompile(`viewer +http://\S+/room/demo`).FindAllString(out.String(), -1)
	if len(children) != 5 || len(pages) != 4 {
		t.Fatalf("%d processes and %d viewer pages, want 5 and 4\n%s", len(children), len(pages), out)
	}
	victim, err := strconv.Atoi(processLine.FindStringSubmatch(out.String())[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	out.until(t, "n1 has ended: signal: killed; its viewers reconnect to n2 or n3 and resume")
	front := regexp.MustCompile(`all +viewer +(http://\S+)`).FindStringSubmatch(out.String())
	for range 6 { // more than there are nodes: the dead one is passed over each time
		page, err := http.Get(front[1])
		if err != nil {
			t.Fatalf("a page by the one address: %v", err)
		}
		if page.Body.Close(); page.StatusCode != http.StatusOK {
			t.Errorf("a page by the one address: %s", page.Status)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the end by Ctrl-C: %v\n%s", err, out)
	}
	awaitEnds(t, children)
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestAKilledClusterTakesItsProcessesAlong(t *testing.T) {
	t.Parallel()
	cmd, _, _ := startCluster(t, "1")
	children := descendants(t, cmd.Process.Pid)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitEnds(t, children)
}
