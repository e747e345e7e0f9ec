package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startTimeout = 30 * time.Second // until a child has said that it is ready
	stopTimeout  = 20 * time.Second // until a child that was told to end is killed
	tailBytes    = 16 << 10         // of a child's log kept for the case that it fails
)

// Child is a process that this tool started and ends again. Its signals are safe for concurrent use.
type Child struct {
	Name string
	Cmd  *exec.Cmd
	Log  *tail
	Gone chan struct{} // closed when the process has ended
	err  error         // how it ended; valid when gone is closed
}

// ChildVariable is set in the environment of this program as its own child, for a test binary, which finds its own flags there.
const ChildVariable = "LOADTEST_CHILD"

// BeginSelf starts this very program again as what its arguments say (see run), so that its processor time is not this tool's.
func BeginSelf(ctx context.Context, cpus string, heard func(line string) bool, args ...string) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", args[0], err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), ChildVariable+"=1")
	return Begin(ctx, args[0], cmd, cpus, heard)
}

// errSilent is why a child's output ended, or time ran out, before it said what was waited for.
var errSilent = errors.New("it did not say that it is ready")

// Begin starts cmd on the processors of a list, in a group of its own, so that a Ctrl-C reaches this tool alone, which
// then stops its children in order. Every line of its standard output is shown to heard until that returns true; then it
// is ready. A child that was started is returned with an error too.
func Begin(ctx context.Context, name string, cmd *exec.Cmd, cpus string, heard func(line string) bool) (*Child, error) {
	c := &Child{Name: name, Cmd: cmd, Log: &tail{}, Gone: make(chan struct{})}
	cmd.SysProcAttr = ownGroup()
	if cmd.Stderr == nil {
		cmd.Stderr = c.Log
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := startPinned(cmd, cpus); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	ready := make(chan bool, 1)
	go func() {
		defer close(c.Gone)
		ready <- Listen(io.TeeReader(stdout, c.Log), heard)
		_, _ = io.Copy(io.Discard, stdout) // until it ends
		c.err = cmd.Wait()
	}()
	select {
	case ok := <-ready:
		if !ok {
			c.Kill() // it is ending, and then its log is whole
			return c, fmt.Errorf("%s: %w\n%s", name, errSilent, c.Log)
		}
		return c, nil
	case <-time.After(startTimeout):
		return c, fmt.Errorf("%s: %w within %s\n%s", name, errSilent, startTimeout, c.Log)
	case <-ctx.Done():
		return c, ctx.Err()
	}
}

// Listen reads lines until heard has heard enough, and reports whether it has.
func Listen(r io.Reader, heard func(string) bool) bool {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if heard(lines.Text()) {
			return true
		}
	}
	return false
}

// Stop ends the process in order and waits for its end. One that is stopped by SIGSTOP is continued for it.
func (c *Child) Stop() {
	_ = c.Cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	_ = Proceed(c.Cmd.Process)
	select {
	case <-c.Gone:
	case <-time.After(stopTimeout):
		c.Kill()
	}
}

// Kill ends the process without a word (kill -9) and waits for its end.
func (c *Child) Kill() {
	_ = c.Cmd.Process.Kill() // it may have ended by itself
	<-c.Gone
}

// Alive reports whether the process has not ended.
func (c *Child) Alive() bool {
	select {
	case <-c.Gone:
		return false
	default:
		return true
	}
}

// Ended is how a process that is gone has ended, in words.
func (c *Child) Ended() string {
	if c.err != nil {
		return c.err.Error()
	}
	return "as it was told"
}

// Failed reports whether a process that is gone ended by itself and not well.
func (c *Child) Failed() bool {
	var exit *exec.ExitError
	return errors.As(c.err, &exit) && exit.Exited()
}

// tail keeps the end of what is written to it. Safe for concurrent use.
type tail struct {
	mu  sync.Mutex
	buf []byte // guarded by mu
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailBytes; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// Last is the last line.
func (t *tail) Last() string {
	all := t.String()
	return all[strings.LastIndexByte(all, '\n')+1:]
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(bytes.ToValidUTF8(t.buf, []byte("?"))))
}
