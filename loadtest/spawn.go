package main

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"liveroom/loadtest/internal/process"
)

// node is a liveserver that this tool started.
type node struct {
	*process.Child
	addresses
}

// fleet starts nodes of one cluster. It is fixed after construction, but for the nodes and what they share.
type fleet struct {
	dir       string // for the nodes' data
	binary    string // the liveserver
	secret    string
	cpus      string
	syncDelay time.Duration // see -sync-delay
	log       string        // file for what the nodes write to standard error; empty: kept, and shown when one fails
	extra     []string
	progress  *progress

	shared *process.Backing // nil for a node alone
	nodes  []*node
}

// newFleet builds the server if need be, and starts what several nodes share unless its URLs are given. The fleet is
// returned with an error too, for what has been started.
func newFleet(ctx context.Context, dir string, o *serverOptions, p *progress) (*fleet, error) {
	f := &fleet{dir: dir, binary: o.server, secret: newSecret(), cpus: o.serverCPUs, log: o.serverLog, syncDelay: o.syncDelay, progress: p}
	if f.binary == "" {
		p.line("building liveserver")
		f.binary = filepath.Join(dir, "liveserver")
		if err := build(ctx, f.binary); err != nil {
			return f, err
		}
	}
	if o.spawn <= 1 && o.nats == "" && o.redis == "" {
		return f, nil
	}
	p.line("starting Redis and NATS")
	var err error
	f.shared, err = process.StartBacking(ctx, dir, o.nats, o.redis)
	return f, err
}

func newSecret() string {
	var b [24]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// build compiles cmd/liveserver of the module that this tool is run from.
func build(ctx context.Context, binary string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "liveroom/cmd/liveserver")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("building liveserver (or give -server): %w\n%s", err, out)
	}
	return nil
}

// launch starts a node of this name, with the data that an earlier one of the name has left.
func (f *fleet) launch(ctx context.Context, name string, args ...string) (*node, error) {
	f.progress.line("starting " + name)
	args = slices.Concat([]string{"-node-id", name, "-data-dir", filepath.Join(f.dir, name), "-auth-secret", f.secret, "-gifts-authority", "open"}, f.extra, args)
	if f.shared != nil {
		args = append(args, "-nats", f.shared.NatsURL, "-redis", f.shared.RedisURL)
	}
	cmd := exec.Command(f.binary, args...)
	if f.syncDelay > 0 { // a rename is where a file was written with O_SYNC
		cmd = exec.Command("strace", append([]string{"-D", "-qq", "-f", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=fsync,fdatasync,renameat", "-e",
			fmt.Sprintf("inject=fsync,fdatasync,renameat:delay_exit=%d", f.syncDelay.Microseconds()), f.binary}, args...)...)
	}
	if f.log != "" {
		file, err := os.OpenFile(f.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		defer file.Close() // the child has its own
		cmd.Stderr = file
	}
	n := &node{}
	c, err := process.Begin(ctx, name, cmd, f.cpus, n.addresses.hear)
	if c == nil {
		return nil, err
	}
	n.Child = c
	f.nodes = append(f.nodes, n)
	return n, err
}

// stop ends the nodes, all at a time, and then what they share.
func (f *fleet) stop() {
	done := make(chan struct{})
	for _, n := range f.nodes {
		go func() { n.Stop(); done <- struct{}{} }()
	}
	for range f.nodes {
		<-done
	}
	if f.shared != nil {
		f.shared.Stop()
	}
}

// start starts the -spawn nodes.
func (b *bench) start(ctx context.Context) error {
	o := b.o
	dir, err := os.MkdirTemp("", "loadtest-")
	if err != nil {
		return err
	}
	b.temp = dir
	if b.fleet, err = newFleet(ctx, dir, &o.serverOptions, b.progress); err != nil {
		return err
	}
	rules, err := b.ruleFile(dir)
	if err != nil {
		return err
	}
	o.secret = b.fleet.secret
	b.fleet.extra = []string{"-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0", "-limits-file", rules, "-drain-timeout", o.drain.String(),
		"-log-level", "warn", "-rooms-create-rate", "0"}
	if o.tls {
		flags, err := certificate(dir)
		if err != nil {
			return fmt.Errorf("a certificate for the nodes: %w", err)
		}
		b.fleet.extra, o.insecure = append(b.fleet.extra, flags...), true
	}
	f, after := b.fleet, b.fleet.binary
	f.binary = cmp.Or(o.before, after)
	defer func() { f.binary = after }()
	b.fleet.extra = append(b.fleet.extra, strings.Fields(o.serverArgs)...)
	for i := range o.spawn {
		n, err := f.launch(ctx, nodeName(i))
		if err != nil {
			return err
		}
		o.urls, o.admins, o.pids = append(o.urls, n.url), append(o.admins, n.admin), append(o.pids, n.Cmd.Process.Pid)
	}
	return nil
}

// certificate writes one of ECDSA P-256 into dir and returns the flags that name it.
func certificate(dir string) (flags []string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(240 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	for flag, block := range map[string]pem.Block{"-tls-cert": {Type: "CERTIFICATE", Bytes: cert}, "-tls-key": {Type: "PRIVATE KEY", Bytes: der}} {
		name := filepath.Join(dir, flag[1:]+".pem")
		if err := os.WriteFile(name, pem.EncodeToMemory(&block), 0o600); err != nil {
			return nil, err
		}
		flags = append(flags, flag, name)
	}
	return flags, nil
}

func nodeName(i int) string { return fmt.Sprintf("n%d", i+1) }

// ruleFile writes the scenario's rules, or checks those that were given, and learns the bound from them.
func (b *bench) ruleFile(dir string) (string, error) {
	path, rules := b.o.rules, []byte(nil)
	var err error
	if path == "" {
		rules = benchRules
		if make := b.o.scenario.rules; make != nil {
			rules = make(b.o)
		}
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

// addresses are where a node listens, as it prints them at start.
type addresses struct {
	url, admin string // without a path
	pages      []page // for people, as printed
}

var addressLine = regexp.MustCompile(`^\s*(viewer|host|admin)\s+((https?://[^/\s#]+)\S*)`)

// hear takes a line and reports whether both addresses are known.
func (a *addresses) hear(line string) bool {
	m := addressLine.FindStringSubmatch(line)
	if m == nil {
		return a.url != "" && a.admin != ""
	}
	switch m[1] {
	case "viewer":
		a.url = m[3]
	case "admin":
		a.admin = m[3]
	}
	a.pages = append(a.pages, page{m[1], m[2]})
	return a.url != "" && a.admin != ""
}

// page is one address for people.
type page struct{ name, url string }
