package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/store"
	"liveroom/internal/admit"
	"liveroom/internal/config"
	"liveroom/limit/redisstore"
)

// Finding is what an examination says of one thing.
type Finding struct {
	About string
	Said  string
	Do    string // what to do; "" when all is well
	Grave bool   // a node would not start, or not hold what it promises
}

// What is found wrong from here on.
const (
	clockMost    = 500 * time.Millisecond // between this machine and a store; tokens allow for 2 s (auth.leeway)
	syncMost     = 20 * time.Millisecond  // of a write to disk: a gift waits for one
	volumeFull   = 0.9                    // of data_dir's volume; from there on a running node warns as well
	renewBefore  = 14 * 24 * time.Hour    // a certificate ends
	reachTimeout = 3 * time.Second
	// sessionBytes is what an idle viewer takes, TLS not counted (README), with room for a busy one's queue.
	sessionBytes = 8 << 10
)

// Examine looks at all that a node of this configuration needs and that goes wrong in operation. It may run beside a
// node that serves, and leaves nothing behind but the data directory, which a start would make as well.
func Examine(ctx context.Context, cfg config.Config) (all []Finding) {
	add := func(f ...Finding) { all = append(all, f...) }
	if rules, err := Check(cfg); err != nil {
		add(Finding{"configuration", err.Error(), "mend it: the README has every key", true})
	} else {
		add(Finding{About: "configuration", Said: fmt.Sprintf("valid, %d limit rules", rules)})
	}
	add(examineDescriptors(cfg), examineMemory(cfg))
	add(examineKernel(cfg)...)
	add(examineDisk(cfg.DataDir))
	add(examineVolume(cfg.DataDir)...)
	add(examinePort("addr", cfg.Addr), examinePort("admin_addr", cfg.AdminAddr))
	add(examineNames(ctx, cfg)...)
	add(examineRedis(ctx, cfg)...)
	add(examineNATS(ctx, cfg)...)
	add(examineReceiver(ctx, cfg.Tracing.Endpoint)...)
	add(examineCertificate("tls.cert", cfg.TLS.Cert, cfg.PublicURL)...)
	add(examineCertificate("admin_tls.cert", cfg.AdminTLS.Cert, "")...)
	add(examineCertificate("nats_cert", cfg.NATSFiles.Cert, "")...)
	return all
}

func examineDescriptors(cfg config.Config) Finding {
	a := admit.Allot()
	f := Finding{About: "open files", Said: fmt.Sprintf("limit %d, %d connections of viewers, sessions.max %d", a.Limit, a.Viewers, cfg.Sessions.Max)}
	if a.Viewers < cfg.Sessions.Max {
		f.Do = fmt.Sprintf("raise the limit to %d or more (ulimit -n, LimitNOFILE= of the unit, ulimits of the container), or lower sessions.max", cfg.Sessions.Max+2048)
	}
	return f
}

func examineMemory(cfg config.Config) Finding {
	need := uint64(cfg.Sessions.Max) * sessionBytes
	bound := admit.NewHeadroom(uint64(cfg.Sessions.MaxMemory) << 20).Limit()
	f := Finding{About: "memory", Said: fmt.Sprintf("%d MiB for sessions.max sockets, bound %s", need>>20, megabytes(bound))}
	switch {
	case bound == 0:
		f.Do = "set sessions.max_memory, GOMEMLIMIT or the container's limit, so that a crowd is told to come back before the kernel kills"
	case need > bound*3/4:
		f.Do = "more memory or a lower sessions.max: from three quarters of the bound on newcomers are sent away"
	}
	return f
}

func megabytes(n uint64) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// kernel lists what Linux' defaults are too small for; want is of a node with so many sessions.
var kernel = []struct {
	name string
	want func(sessions int) int
	why  string
}{
	{"net.core.somaxconn", func(int) int { return 8192 }, "connections that wait to be accepted when everybody comes back at once"},
	{"net.ipv4.tcp_max_syn_backlog", func(int) int { return 8192 }, "connections half open in the same moment"},
	{"net.netfilter.nf_conntrack_max", func(n int) int { return 2 * n }, "connections that the firewall remembers: beyond them packets are dropped without a word"},
	{"fs.file-max", func(n int) int { return 2 * n }, "open files of the whole machine"},
}

func examineKernel(cfg config.Config) (all []Finding) {
	for _, k := range kernel {
		raw, err := os.ReadFile(filepath.Join("/proc/sys", strings.ReplaceAll(k.name, ".", "/")))
		have, bad := strconv.ParseUint(strings.TrimSpace(string(raw)), 10, 64)
		if err != nil || bad != nil { // another system, or without a firewall
			continue
		}
		f := Finding{About: k.name, Said: fmt.Sprint(have)}
		if want := k.want(cfg.Sessions.Max); have < uint64(want) {
			f.Do = fmt.Sprintf("sysctl -w %s=%d: %s", k.name, want, k.why)
		}
		all = append(all, f)
	}
	return all
}

// examineDisk measures what a gift waits for: the middle one of some synced writes.
func examineDisk(dir string) Finding {
	f := Finding{About: "data_dir", Grave: true, Do: "a directory that this user can write to, on a disk of its own"}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		f.Said = err.Error()
		return f
	}
	file, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		f.Said = err.Error()
		return f
	}
	defer os.Remove(file.Name())
	defer file.Close()
	var took []time.Duration
	for range 21 {
		began := time.Now()
		_, err := file.Write(make([]byte, 512))
		if err := errors.Join(err, file.Sync()); err != nil {
			f.Said = err.Error()
			return f
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	middle := took[len(took)/2]
	f = Finding{About: "data_dir", Said: fmt.Sprintf("a synced write takes %v, %v at worst", middle.Round(time.Microsecond), took[len(took)-1].Round(time.Microsecond))}
	if middle > syncMost {
		f.Do = fmt.Sprintf("a quicker disk: each gift waits for a write, so this one takes some %d gifts/s", int(time.Second/middle))
	}
	return f
}

// examineVolume looks at how full the disk is; nothing is said where that can't be told.
func examineVolume(dir string) []Finding {
	used, ok := store.VolumeUsed(dir)
	if !ok {
		return nil
	}
	f := Finding{About: "volume of data_dir", Said: fmt.Sprintf("%.0f %% used", 100*used)}
	if used >= volumeFull {
		f.Do = "make room: once it is full, gifts, likes and settings are refused"
	}
	return []Finding{f}
}

func examinePort(path, addr string) Finding {
	ln, err := net.Listen("tcp", addr)
	switch {
	case err == nil:
		ln.Close()
		return Finding{About: path, Said: addr + " is free"}
	case errors.Is(err, syscall.EADDRINUSE):
		return Finding{About: path, Said: addr + " is in use: well, if by this node"}
	}
	return Finding{path, err.Error(), "an address of this machine; ports below 1024 need CAP_NET_BIND_SERVICE", true}
}

// examineNames resolves every host that the configuration names.
func examineNames(ctx context.Context, cfg config.Config) (all []Finding) {
	var hosts []string
	urls := append([]string{cfg.PublicURL, cfg.Auth.JWKSURL, cfg.Hooks.Gift.URL, cfg.Hooks.Join.URL, cfg.Hooks.Danmaku.URL, cfg.AdminOIDC.Issuer}, cfg.NATS...)
	for _, w := range cfg.Webhooks {
		urls = append(urls, w.URL)
	}
	if _, rest, ok := strings.Cut(cfg.Redis, "://"); ok { // several hosts are no URL
		rest, _, _ = strings.Cut(rest[strings.LastIndex(rest, "@")+1:], "/")
		for h := range strings.SplitSeq(rest, ",") {
			urls = append(urls, "redis://"+h)
		}
	}
	for _, s := range urls {
		u, err := url.Parse(s)
		if err != nil || u.Hostname() == "" || net.ParseIP(u.Hostname()) != nil || slices.Contains(hosts, u.Hostname()) {
			continue
		}
		hosts = append(hosts, u.Hostname())
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	for _, h := range hosts {
		f := Finding{About: "name " + h}
		addrs, err := net.DefaultResolver.LookupHost(ctx, h)
		if f.Said = strings.Join(addrs, " "); err != nil {
			f.Said, f.Do, f.Grave = err.Error(), "mend the name or the resolver (/etc/resolv.conf)", true
		}
		all = append(all, f)
	}
	return all
}

func examineRedis(ctx context.Context, cfg config.Config) []Finding {
	if cfg.Redis == "" {
		return nil
	}
	trust, err := roots("redis_ca", cfg.RedisCA)
	if err != nil {
		return []Finding{{"redis", err.Error(), "mend redis_ca", true}}
	}
	shared, err := redisstore.Open(redisstore.Config{URL: cfg.Redis, TLS: &tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS12}})
	if err != nil {
		return []Finding{{"redis", err.Error(), "mend the URL", true}}
	}
	defer shared.Close()
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if _, err := shared.Time(ctx); err != nil {
		return []Finding{{"redis", err.Error(), "start it, or open the way to it; until then each node grants its part of a quota", false}}
	}
	began := time.Now() // the first call paid for the connection
	theirs, err := shared.Time(ctx)
	if err != nil {
		return []Finding{{"redis", err.Error(), "look at its log", false}}
	}
	return []Finding{clock("redis", began, theirs)}
}

// clock compares a store's clock, asked between began and now, with this machine's.
func clock(about string, began, theirs time.Time) Finding {
	round := time.Since(began)
	off := theirs.Sub(began.Add(round / 2))
	f := Finding{About: about, Said: fmt.Sprintf("answers in %v, clocks differ by %v", round.Round(10*time.Microsecond), off.Abs().Round(time.Millisecond))}
	if off.Abs() > clockMost+round {
		f.Do = "have both machines' clocks set by NTP (chrony): tokens and the times that viewers see are of this one"
	}
	return f
}

func examineNATS(ctx context.Context, cfg config.Config) []Finding {
	if cfg.Embedded() {
		return nil
	}
	secure, err := natsTLS(cfg.NATSFiles)
	if err != nil {
		return []Finding{{"nats", err.Error(), "mend the file", true}}
	}
	opts := []nats.Option{nats.Timeout(reachTimeout), nats.MaxReconnects(0)}
	if secure != nil {
		opts = append(opts, nats.Secure(secure))
	}
	if cfg.NATSFiles.Creds != "" {
		opts = append(opts, nats.UserCredentials(cfg.NATSFiles.Creds))
	}
	var all []Finding
	for _, server := range cfg.NATS { // each on its own: one that is away hides behind the others
		about := "nats " + cmp.Or(hostOf(server), "server")
		nc, err := nats.Connect(server, opts...)
		if err != nil {
			all = append(all, Finding{about, err.Error(), "start it, or open the way to it; with a majority away gifts are refused", true})
			continue
		}
		all = append(all, examineServer(ctx, about, nc))
		nc.Close()
	}
	return all
}

// examineServer asks for the ledger, with which a server tells its time.
func examineServer(ctx context.Context, about string, nc *nats.Conn) Finding {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	js, err := jetstream.New(nc)
	if err != nil {
		return Finding{about, err.Error(), "look at its configuration", true}
	}
	began := time.Now()
	ledger, err := js.Stream(ctx, "liveroom_gifts")
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return Finding{About: about, Said: fmt.Sprintf("version %s answers in %v; no node has started on it yet, so its clock is not known", nc.ConnectedServerVersion(), time.Since(began).Round(10*time.Microsecond))}
	case err != nil:
		return Finding{about, err.Error(), "JetStream on, and the rights of docs/runbook.md, \"What NATS must allow\"", true}
	}
	return clock(about, began, ledger.CachedInfo().TimeStamp)
}

// examineReceiver connects to where traces are sent, and sends none.
func examineReceiver(ctx context.Context, endpoint string) []Finding {
	u, err := url.Parse(endpoint)
	if endpoint == "" || err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])))
	if err != nil {
		return []Finding{{"tracing.endpoint", err.Error(), "start it, or open the way to it; until then traces are dropped, and nothing else", false}}
	}
	to.Close()
	return []Finding{{About: "tracing.endpoint", Said: u.Host + " takes connections"}}
}

func hostOf(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	return u.Host
}

// examineCertificate looks at how long a certificate is good for, and whether it is for the host that viewers type.
func examineCertificate(path, file, public string) []Finding {
	if file == "" {
		return nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return []Finding{{path, err.Error(), "a file that this user can read", true}}
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return []Finding{{path, "no PEM in " + file, "a PEM certificate", true}}
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return []Finding{{path, err.Error(), "a PEM certificate", true}}
	}
	left := time.Until(leaf.NotAfter)
	f := Finding{About: path, Said: fmt.Sprintf("good for %d days", int(left.Hours()/24))}
	if u, err := url.Parse(public); err == nil && u.Hostname() != "" && leaf.VerifyHostname(u.Hostname()) != nil {
		return []Finding{{path, fmt.Sprintf("is not for %s, but for %s", u.Hostname(), strings.Join(leaf.DNSNames, " ")), "a certificate for the host of public_url", true}}
	}
	if left < renewBefore {
		f.Do, f.Grave = "renew it: a new file is taken within 15s, without a restart", left <= 0
	}
	return []Finding{f}
}
