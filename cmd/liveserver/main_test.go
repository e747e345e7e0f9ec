package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"liveroom/internal/token"
)

// asMain makes the test binary behave as the server, so that tests can kill a real process.
const asMain = "LIVESERVER_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		os.Unsetenv(asMain)
		main()
	}
	if dir, port, ok := strings.Cut(os.Getenv(asNATS), "|"); ok {
		serveNATS(dir, port)
	}
	if spec := os.Getenv(asWallet); spec != "" {
		serveWallet(spec)
	}
	// go-redis goes on trying to connect, each second, for some time after a pool whose server is gone was closed.
	goleak.VerifyTestMain(withChromium{m}, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// withChromium ends the browser of all tests, before leaks are looked for.
type withChromium struct{ *testing.M }

func (m withChromium) Run() int {
	defer func() {
		if chromium.stop != nil {
			chromium.stop()
		}
	}()
	return m.M.Run()
}

// patience bounds every wait of these tests; it is long because the machine may be busy.
const patience = 30 * time.Second

// server is a running liveserver of this test.
type server struct {
	url, admin            string // without a slash at the end
	hostToken, adminToken string
	logs                  *lines
	stop                  func() error // ends it as a first signal does; further calls return the same
}

// startServer runs the server in this process on free ports. The data directory is dir, or one of its own for "".
func startServer(t *testing.T, dir string, args ...string) *server {
	t.Helper()
	return startUndecided(t, dir, append([]string{"-gifts-authority", "open"}, args...)...)
}

// startUndecided is startServer where nobody said who pays for gifts.
func startUndecided(t *testing.T, dir string, args ...string) *server {
	t.Helper()
	if dir == "" {
		dir = t.TempDir()
	}
	ctx, cancel := context.WithCancel(context.Background())
	stdout, logs := &lines{}, &lines{}
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = run(ctx, append(serverArgs(dir), args...), stdout, logs, nil)
	}()
	s := &server{logs: logs, stop: func() error { cancel(); <-done; return err }}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	s.readAddresses(t, stdout, done)
	return s
}

// serverArgs are of a node that never calls itself behind: beside other tests it would refuse what they ask.
func serverArgs(dir string) []string {
	return []string{"-rooms-behind", "1h", "-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0", "-data-dir", dir, "-node-id", "n1", "-print-tokens", "always", "-drain-timeout", "300ms"}
}

var printed = regexp.MustCompile(`viewer +(\S+)/room/demo\n +host +\S+#token=(\S+)\n +admin +(\S+)/#token=(\S+)\n`)

func (s *server) readAddresses(t *testing.T, stdout *lines, done <-chan struct{}) {
	t.Helper()
	await(t, "printed addresses", func() bool {
		select {
		case <-done:
			t.Fatalf("the server ended at once: %v\n%s", s.stop(), s.logs)
		default:
		}
		m := printed.FindStringSubmatch(stdout.String())
		if m == nil {
			return false
		}
		s.url, s.hostToken, s.admin, s.adminToken = m[1], m[2], m[3], m[4]
		return true
	})
}

// tokenFor signs a token with the server's own subcommand, for a server that runs in dir or is yet to.
func tokenFor(t *testing.T, dir string, args ...string) string {
	t.Helper()
	if _, err := token.Secret(dir); err != nil {
		t.Fatal(err)
	}
	out, errs := &lines{}, &lines{}
	if err := run(t.Context(), append([]string{"token", "-data-dir", dir}, args...), out, errs, nil); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

// await polls until ok, ever less often: a look at a server costs it time that what is waited for may need.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	end := time.After(patience)
	for pause := 2 * time.Millisecond; !ok(); pause = min(pause*3/2, 100*time.Millisecond) {
		select {
		case <-time.After(pause):
		case <-end:
			t.Fatalf("no %s within %v", what, patience)
		}
	}
}

// lines is a writer that can be read meanwhile.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var _ fmt.Stringer = (*lines)(nil)
