package main

import (
	"net"
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

// child is this binary as another program that listens somewhere, which can be killed and started again.
type child struct {
	t            *testing.T
	address, dir string // the latter is its own
	as           string // the variable that says what it is
	cmd          *exec.Cmd
}

// newChild makes one, not started, which ends with the test.
func newChild(t *testing.T, as func(address, dir string) string) *child {
	t.Helper()
	c := &child{t: t, address: freeAddress(t), dir: t.TempDir()}
	c.as = as(c.address, c.dir)
	t.Cleanup(c.kill)
	return c
}

func (c *child) start() {
	c.t.Helper()
	startAll([]*child{c})
}

// startAll starts all of them before it waits for one: a server alone may have nobody to agree with.
func startAll(children []*child) {
	for _, c := range children {
		c.launch()
	}
	for _, c := range children {
		await(c.t, "one who listens at "+c.address, func() bool {
			conn, err := net.Dial("tcp", c.address)
			if err == nil {
				conn.Close()
			}
			return err == nil
		})
	}
}

func (c *child) launch() {
	c.t.Helper()
	c.cmd = exec.Command(os.Args[0])
	c.cmd.Env = []string{c.as, "HOME=" + c.dir}
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) kill() {
	if c.cmd != nil && c.cmd.Process != nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait() // "signal: killed", as asked
	}
}

// freeAddress is one of the loopback on which nobody listens right now.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}
