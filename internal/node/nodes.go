package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/fanout"
	"liveroom/fanout/link"
	"liveroom/fanout/presence"
	"liveroom/fanout/store"
	"liveroom/internal/config"
	"liveroom/protocol"
)

// joinNodes opens the fabric between nodes.
func (n *Node) joinNodes(ctx context.Context, reg prometheus.Registerer) (err error) {
	cfg := stored(n.cfg)
	cfg.Metrics, cfg.Trace = reg, n.trace
	if n.cfg.Embedded() {
		if n.fabric, err = fanout.Open(ctx, cfg, n.log); err != nil {
			return config.Fault{Path: "data_dir", Allowed: "a directory that the embedded NATS server can use", Received: err.Error()}
		}
		n.closers.add("close the store", closeTimeout, n.fabric.Close)
		return nil
	}
	cfg.URLs, cfg.Credentials = n.cfg.NATS, n.cfg.NATSFiles.Creds
	if cfg.TLS, err = natsTLS(n.cfg.NATSFiles); err != nil {
		return err
	}
	cfg.Shared = n.cfg.Redis != ""
	n.fabric, err = fanout.Open(ctx, cfg, n.log)
	switch {
	case errors.Is(err, presence.ErrNotShared):
		return config.Fault{Path: "redis", Allowed: "one that all nodes on these NATS servers share, since there are several", Received: err.Error()}
	case errors.Is(err, presence.ErrNodeTaken):
		return config.Fault{Path: "node_id", Allowed: "one that no other node on these NATS servers has", Received: err.Error()}
	case errors.Is(err, link.ErrForbidden):
		return config.Fault{Path: "nats", Allowed: "a user that may do what docs/runbook.md names", Received: err.Error()}
	case err != nil:
		return config.Fault{Path: "nats", Allowed: "servers that can be reached, with JetStream on", Received: err.Error()}
	}
	n.closers.add("close the store", closeTimeout, n.fabric.Close)
	return nil
}

// stored is what a node of this configuration keeps where.
func stored(cfg config.Config) fanout.Config {
	kept := cfg.Events
	return fanout.Config{
		NodeID: cfg.NodeID, DataDir: cfg.DataDir,
		GiftAge: kept.GiftAge, GiftBytes: int64(kept.GiftSize) << 20,
		Danmaku: store.Danmaku{Off: kept.Danmaku == config.EventsOff, Age: kept.DanmakuAge, Bytes: int64(kept.DanmakuSize) << 20},
	}
}

// hasStore finds fault with a build that is told to keep everything inside and has nothing to keep it in.
func hasStore(cfg config.Config) error {
	if cfg.Embedded() && !natsInside {
		return config.Fault{Path: "nats", Allowed: "URLs of NATS servers such as nats://host:4222, since this build has none inside", Received: config.NATSEmbedded}
	}
	return nil
}

// natsTLS reads the files that prove one side to the other; nil when none is named.
func natsTLS(files config.NATSFiles) (*tls.Config, error) {
	if files.CA == "" && files.Cert == "" {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if out.RootCAs, err = roots("nats_ca", files.CA); err != nil {
		return nil, err
	}
	if files.Cert != "" {
		pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		if err != nil {
			return nil, config.Fault{Path: "nats_cert", Allowed: "a PEM certificate that belongs to nats_key", Received: err.Error()}
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}

// roots reads certificates to check others against; nil, which stands for the system's, when no file is named.
func roots(path, file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, config.Fault{Path: path, Allowed: "a file that can be read", Received: err.Error()}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, config.Fault{Path: path, Allowed: "PEM certificates", Received: file + ", which holds none"}
	}
	return pool, nil
}

// ID is the configured one, else made of the host's name; of several nodes on one host each has its port.
func ID(cfg config.Config) string {
	if cfg.NodeID != "" {
		return cfg.NodeID
	}
	name, err := os.Hostname()
	if err != nil {
		name = "n1"
	}
	suffix := ""
	if !cfg.Embedded() {
		_, port, _ := net.SplitHostPort(cfg.Addr)
		if port == "0" {
			port = strconv.Itoa(os.Getpid())
		}
		suffix = "-" + port
	}
	id := strings.Map(func(r rune) rune {
		if r < 128 && protocol.ValidRoom(string(r)) {
			return r
		}
		return '-'
	}, name)
	return cmp.Or(id[:min(len(id), protocol.MaxIdentifier-len(suffix))], "n1") + suffix
}
