package redistest

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is one redis-server.
type Server struct {
	// Addr is its host:port, the same after a restart.
	Addr string

	t    testing.TB
	dir  string
	file string
	args []string

	mu      sync.Mutex
	process *os.Process   // nil when killed
	exited  chan struct{} // closed when it is waited for
	output  *output       // written until then
	client  *redis.Client
}

// Start returns a server that answers, without persistence, with more options of
// redis-server's command line.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, "", append([]string{
		"--save", "", "--appendonly", "no", "--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0",
	}, args...)...)
}

// start runs a server, by a configuration file if there is one.
func start(t testing.TB, file string, args ...string) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir(), file: file, args: args}
	for try := range 5 {
		s.Addr = freeAddr(t)
		if s.run() == nil {
			break
		}
		s.Kill()
		if try == 4 {
			t.Fatalf("redis-server does not start:\n%s", s.output)
		}
		s.disconnect()
	}
	t.Cleanup(func() {
		s.Kill()
		s.disconnect()
	})
	return s
}

// disconnect lets Client make another client, to another address.
func (s *Server) disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		_ = s.client.Close()
		s.client = nil
	}
}

// program finds redis-server.
func program(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("this test needs a real Redis: apt-get install redis-server (or valkey-server)")
	return ""
}

// freeAddr returns an address of the loopback on which nobody listens, nor on
// its cluster bus port.
func freeAddr(t testing.TB) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().(*net.TCPAddr)
		_ = l.Close()
		if addr.Port < 55535 {
			return addr.String()
		}
	}
}

// run starts the process and waits until it serves.
func (s *Server) run() error {
	s.t.Helper()
	_, port, _ := net.SplitHostPort(s.Addr)
	var args []string
	if s.file != "" {
		args = append(args, s.file)
	}
	args = append(append(args, "--port", port, "--bind", "127.0.0.1", "--dir", s.dir), s.args...)
	cmd := exec.Command(program(s.t), args...)
	said := &output{serves: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }() // Kill waits for it
	s.mu.Lock()
	s.process, s.exited, s.output = cmd.Process, exited, said
	s.mu.Unlock()
	select {
	case <-said.serves:
		return s.answers(20*time.Second, exited)
	case <-exited:
		return errors.New("it has exited")
	case <-time.After(20 * time.Second):
		return errors.New("it does not come to serve")
	}
}

// output is what a server prints. It is believed before any answer: on a port
// that was taken meanwhile somebody else's server answers, too.
type output struct {
	said   bytes.Buffer
	serves chan struct{} // closed when the server says so
}

func (o *output) Write(p []byte) (int, error) {
	o.said.Write(p)
	select {
	case <-o.serves:
	default:
		if said := o.String(); strings.Contains(said, "Ready to accept connections") || strings.Contains(said, "Sentinel ID is") {
			close(o.serves)
		}
	}
	return len(p), nil
}

func (o *output) String() string { return o.said.String() }

// answers waits until the client, which may have known the server dead, hears PONG.
func (s *Server) answers(within time.Duration, exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	for {
		err := s.Client().Ping(ctx).Err()
		if err == nil || redis.IsAuthError(err) {
			return nil
		}
		select {
		case <-exited:
			return errors.New("it has exited")
		case <-ctx.Done():
			return err
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// wait lets a moment pass between two looks at something outside this process.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Client returns a client for the test's own commands, past any proxy.
func (s *Server) Client() *redis.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		s.client = redis.NewClient(&redis.Options{
			Addr: s.Addr, Protocol: 2, MaxRetries: 3, PoolSize: 4, DisableIdentity: true,
			DialTimeout: time.Second, DialerRetries: 1, ReadTimeout: 10 * time.Second,
		})
	}
	return s.client
}

// URL is the server's address as configurations have it.
func (s *Server) URL() string { return "redis://" + s.Addr }

// Do sends a command and fails the test when that fails.
func (s *Server) Do(args ...any) any {
	s.t.Helper()
	v, err := s.Client().Do(context.Background(), args...).Result()
	if err != nil && err != redis.Nil {
		s.t.Fatalf("redis %v: %v", args, err)
	}
	return v
}

// Kill ends the server with SIGKILL. Its data are lost, unless its options keep
// them on disk.
func (s *Server) Kill() {
	s.mu.Lock()
	process, exited := s.process, s.exited
	s.process = nil
	s.mu.Unlock()
	if process != nil {
		_ = process.Kill()
		<-exited
	}
}

// Restart kills the server and runs it again.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	s.Run()
}

// Run starts a killed server again at the same address, empty unless its options
// keep its data on disk.
func (s *Server) Run() {
	s.t.Helper()
	if err := s.run(); err != nil {
		s.t.Fatalf("redis-server does not start again: %v\n%s", err, s.output)
	}
}

// Pause stops the process with SIGSTOP: it accepts connections and says nothing.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		_ = s.process.Signal(sig)
	}
}
