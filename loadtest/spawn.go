package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startTimeout = 30 * time.Second // until a node has said where it is
	stopTimeout  = 20 * time.Second // until a node that was told to end is killed
	tailBytes    = 16 << 10         // of a node's log kept for the case that it fails
)

// node is a liveserver that this tool started.
type node struct {
	cmd   *exec.Cmd
	log   *tail
	url   string
	admin string
	gone  chan struct{} // closed when the process has ended
}

// start builds the server if need be and starts -spawn nodes of it.
func (b *bench) start(ctx context.Context) error {
	o := b.o
	dir, err := os.MkdirTemp("", "loadtest-")
	if err != nil {
		return err
	}
	b.temp = dir
	binary := o.server
	if binary == "" {
		b.progress.line("building liveserver")
		binary = filepath.Join(dir, "liveserver")
		if err := build(ctx, binary); err != nil {
			return err
		}
	}
	rules, err := b.ruleFile(dir)
	if err != nil {
		return err
	}
	var secret [24]byte
	rand.Read(secret[:])
	o.secret = hex.EncodeToString(secret[:])
	for i := range o.spawn {
		home := filepath.Join(dir, fmt.Sprintf("n%d", i+1))
		n, err := b.launch(ctx, binary, home, nodeArgs(o, home, rules, i))
		if n != nil {
			b.nodes = append(b.nodes, n)
		}
		if err != nil {
			return err
		}
		o.urls, o.admins, o.pids = append(o.urls, n.url), append(o.admins, n.admin), append(o.pids, n.cmd.Process.Pid)
	}
	return nil
}

func nodeArgs(o *options, home, rules string, i int) []string {
	args := []string{"-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0", "-data-dir", home, "-node-id", fmt.Sprintf("n%d", i+1),
		"-auth-secret", o.secret, "-limits-file", rules, "-drain-timeout", "1s", "-log-level", "warn"}
	if o.nats != "" {
		args = append(args, "-nats", o.nats)
	}
	if o.redis != "" {
		args = append(args, "-redis", o.redis)
	}
	return args
}

// build compiles cmd/liveserver of the module that this tool is run from.
func build(ctx context.Context, binary string) error {
	out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "liveroom/cmd/liveserver").CombinedOutput()
	if err != nil {
		return fmt.Errorf("building liveserver (or give -server): %w\n%s", err, out)
	}
	return nil
}

// ruleFile writes the scenario's rules, or checks those that were given, and learns the bound from them.
func (b *bench) ruleFile(dir string) (string, error) {
	path, rules := b.o.rules, b.o.scenario.rules
	var err error
	if path == "" {
		path = filepath.Join(dir, "rules.yaml")
		err = os.WriteFile(path, rules, 0o600)
	} else {
		rules, err = os.ReadFile(path)
	}
	if err != nil {
		return "", fmt.Errorf("rules: %w", err)
	}
	if !b.o.bound.stated() {
		b.o.bound, err = danmakuBound(rules, b.o.viewers)
	}
	return path, err
}

// launch starts a node and waits until it says where it listens. A node that started is returned with an error too.
func (b *bench) launch(ctx context.Context, binary, home string, args []string) (*node, error) {
	b.progress.line("starting " + filepath.Base(home))
	n := &node{cmd: exec.Command(binary, args...), log: &tail{}, gone: make(chan struct{})}
	n.cmd.SysProcAttr = ownGroup() // so that a Ctrl-C reaches this tool alone, which then stops the node in order
	n.cmd.Stderr = n.log
	if b.o.serverLog != "" {
		f, err := os.OpenFile(b.o.serverLog, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		defer f.Close() // the child has its own
		n.cmd.Stderr = f
	}
	stdout, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := startPinned(n.cmd, b.o.serverCPUs); err != nil {
		return nil, fmt.Errorf("starting %s: %w", binary, err)
	}
	said := make(chan addresses, 1)
	go func() {
		defer close(n.gone)
		said <- readAddresses(stdout)
		_, _ = io.Copy(io.Discard, stdout) // until it ends
		_ = n.cmd.Wait()                   // how it ended shows in its log
	}()
	select {
	case a := <-said:
		if n.url, n.admin = a.url, a.admin; a.url == "" || a.admin == "" {
			return n, fmt.Errorf("the node did not say where it listens\n%s", n.log.String())
		}
		return n, nil
	case <-time.After(startTimeout):
		return n, fmt.Errorf("the node said nothing within %s\n%s", startTimeout, n.log.String())
	case <-ctx.Done():
		return n, ctx.Err()
	}
}

type addresses struct{ url, admin string }

var addressLine = regexp.MustCompile(`^\s*(viewer|admin)\s+(https?://[^/\s#]+)`)

// readAddresses reads what a node prints at start, up to both addresses or its end.
func readAddresses(r io.Reader) (a addresses) {
	lines := bufio.NewScanner(r)
	for (a.url == "" || a.admin == "") && lines.Scan() {
		switch m := addressLine.FindStringSubmatch(lines.Text()); {
		case m == nil:
		case m[1] == "viewer":
			a.url = m[2]
		default:
			a.admin = m[2]
		}
	}
	return a
}

// stop ends the node and waits for its end.
func (n *node) stop() {
	_ = n.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-n.gone:
	case <-time.After(stopTimeout):
		_ = n.cmd.Process.Kill()
		<-n.gone
	}
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

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(bytes.ToValidUTF8(t.buf, []byte("?"))))
}
