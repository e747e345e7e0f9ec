package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// Backing is what several nodes share: a NATS server and a Redis, started by this tool.
type Backing struct {
	Nats, Redis       *Child
	NatsURL, RedisURL string
}

// StartBacking starts what is not given by a URL already. What was started is returned with an error too.
func StartBacking(ctx context.Context, dir, natsURL, redisURL string) (*Backing, error) {
	k := &Backing{NatsURL: natsURL, RedisURL: redisURL}
	var err error
	if redisURL == "" {
		if k.Redis, k.RedisURL, err = startRedis(ctx, filepath.Join(dir, "redis")); err != nil {
			return k, err
		}
	}
	if natsURL == "" {
		k.Nats, k.NatsURL, err = startNATS(ctx, filepath.Join(dir, "nats"))
	}
	return k, err
}

// Children are those that were started.
func (k *Backing) Children() []*Child {
	var out []*Child
	for _, c := range []*Child{k.Nats, k.Redis} {
		if c != nil {
			out = append(out, c)
		}
	}
	return out
}

// Stop ends both.
func (k *Backing) Stop() {
	for _, c := range k.Children() {
		c.Stop()
	}
}

// startNATS starts this very program again as a NATS server with streams on disk: see [serveNATS].
func startNATS(ctx context.Context, dir string) (c *Child, url string, err error) {
	c, err = BeginSelf(ctx, "", func(line string) bool { url = line; return strings.HasPrefix(line, "nats://") }, NATSCommand, dir)
	return c, url, err
}

// redisNames are the servers that speak Redis' protocol and take its flags.
var redisNames = []string{"redis-server", "valkey-server"}

// errNoRedis says how to get one.
var errNoRedis = errors.New("no redis-server on the PATH: install it (Debian, Ubuntu: sudo apt-get install redis-server; " +
	"macOS: brew install redis), or give -redis URL of a running one")

// startRedis starts a Redis that keeps nothing on disk, on a free port.
func startRedis(ctx context.Context, dir string) (*Child, string, error) {
	binary := ""
	for _, name := range redisNames {
		if path, err := exec.LookPath(name); err == nil {
			binary = path
			break
		}
	}
	if binary == "" {
		return nil, "", errNoRedis
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", err
	}
	const attempts = 3 // between the choice of a port and its use somebody else may take it
	for i := 1; ; i++ {
		port, err := freePort()
		if err != nil {
			return nil, "", err
		}
		cmd := exec.Command(binary, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no")
		c, err := Begin(ctx, "redis", cmd, "", func(line string) bool { return strings.Contains(line, "Ready to accept connections") })
		if err == nil || i == attempts || ctx.Err() != nil || c == nil {
			return c, fmt.Sprintf("redis://127.0.0.1:%d", port), err
		}
		c.Kill()
	}
}

// freePort is one that nobody listens on right now.
func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

// NATSCommand is the argument that makes this program a NATS server.
const NATSCommand = "nats"

// ServeNATS is a NATS server on a free loopback port, with streams under dir that sync every write as a node's embedded
// one does. It prints its URL and runs until ctx ends.
func ServeNATS(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{ServerName: "loadtest", Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir,
		SyncAlways: true, NoSigs: true, DisableJetStreamBanner: true})
	if err != nil {
		return err
	}
	s.SetLoggerV2(natsLog{stderr}, false, false, false)
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(startTimeout) {
		return errors.New("the NATS server is not ready")
	}
	fmt.Fprintln(stdout, s.ClientURL())
	<-ctx.Done()
	return nil
}

// natsLog writes what is worth reading when the server fails.
type natsLog struct{ w io.Writer }

func (l natsLog) Fatalf(format string, v ...any) { fmt.Fprintf(l.w, "fatal: "+format+"\n", v...) }
func (l natsLog) Errorf(format string, v ...any) { fmt.Fprintf(l.w, "error: "+format+"\n", v...) }
func (l natsLog) Warnf(format string, v ...any)  { fmt.Fprintf(l.w, "warning: "+format+"\n", v...) }
func (natsLog) Noticef(string, ...any)           {}
func (natsLog) Debugf(string, ...any)            {}
func (natsLog) Tracef(string, ...any)            {}
