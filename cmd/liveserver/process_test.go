package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// process is a liveserver in a process of its own.
type process struct {
	server
	cmd *exec.Cmd
}

// startProcess runs the server as its own process, which can be killed.
func startProcess(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return startCommand(t, exec.Command(os.Args[0], append(append(serverArgs(dir), "-gifts-authority", "open"), args...)...))
}

// startCommand runs a command that ends in the server.
func startCommand(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd}
	stdout, logs := &lines{}, &lines{}
	p.logs = logs
	p.cmd.Env = []string{asMain + "=1", "HOME=" + t.TempDir(), "GORACE=atexit_sleep_ms=0"}
	p.cmd.Stdout, p.cmd.Stderr = stdout, logs
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = p.cmd.Wait()
	}()
	p.stop = func() error { <-done; return err }
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-done
		if said := logs.String(); strings.Contains(said, "WARNING: DATA RACE") { // whose exit code nobody sees, if it is killed
			t.Errorf("the process had a race:\n%s", said)
		}
	})
	p.readAddresses(t, stdout, done)
	return p
}

// signal sends one to the process; it may be gone already.
func (p *process) signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// kill ends the process without a chance to clean up.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	_ = p.stop() // "signal: killed", as asked
}
