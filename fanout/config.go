package fanout

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/fanout/link"
	"liveroom/fanout/store"
	"liveroom/internal/trace"
	"liveroom/protocol"
)

// Config configures a [Fabric]. Zero fields take the defaults that are named with them. The periods are what docs promise;
// tests shorten them.
type Config struct {
	// NodeID names this node among all: [A-Za-z0-9_.:@-]{1,64}. Required.
	NodeID string
	// DataDir is where the embedded server keeps its streams (in the folder nats), and a node its marks. Required without URLs.
	DataDir string
	// URLs are NATS servers (2.12 or newer, JetStream on), of one cluster when there are several: nats:// or tls://, with
	// user:password@ or token@ before the host where they ask for it. Others of the cluster are found by themselves.
	// Empty: a server embedded in this process, no port opened.
	URLs []string
	// Credentials is a NATS credentials file for URLs, read at each connecting. Empty: none, or what the URLs carry.
	Credentials string
	// TLS is the client configuration for URLs, which must then be answered with TLS. Nil: the system's roots, where the
	// URL or the server asks for TLS.
	TLS *tls.Config
	// Shared says that this node has a quota store that all nodes share. A node without one must be alone on its NATS
	// servers, else each of them would grant the whole of every quota; see [presence.ErrNotShared].
	Shared bool

	// GiftRetry is how long a gift's id is remembered, the stream's duplicate window. Default 10 minutes.
	GiftRetry time.Duration
	// GiftBytes bounds the ledger; a gift beyond it is refused. Default 4 GiB.
	GiftBytes int64
	// GiftAge is how long a gift stays in the ledger. Default 30 days.
	GiftAge time.Duration
	// Danmaku says how long what was said is kept for who reads the journal, and how much of it: the oldest goes first. Default 7 days, 4 GiB.
	Danmaku store.Danmaku
	// LikesGather is how long likes of different rooms are gathered for one write. Default 100 ms.
	LikesGather time.Duration
	// StoreTimeout bounds each wait for JetStream. Default 2 seconds.
	StoreTimeout time.Duration
	// AnnounceEvery is the period of presence. Default 2 seconds.
	AnnounceEvery time.Duration
	// NodeTimeout is the silence after which another node's counts are dropped. Default 6 seconds.
	NodeTimeout time.Duration
	// ProbeEvery is the period of the messages to ourselves. Default 1 second.
	ProbeEvery time.Duration
	// ProbeTimeout is how long one may be missing before the connection is called deaf and made anew. Default 3 seconds.
	ProbeTimeout time.Duration
	// SweepEvery is the period in which subscribed rooms are compared with the store. Default 10 seconds.
	SweepEvery time.Duration
	// FollowEvery is the period in which limits, revocations, settings and secrets are compared with the store; news of them
	// come at once. Default 1 second.
	FollowEvery time.Duration
	// GrowEvery is the period in which a cluster that had fewer than three servers is asked whether it can hold more
	// replicas now. A reconnect asks too. Default 1 minute.
	GrowEvery time.Duration
	// PendingMessages bounds what waits for one room's handler; beyond it messages are dropped and counted. Default 8192.
	PendingMessages int

	// Metrics registers what is counted. Nil: counted for nobody.
	Metrics prometheus.Registerer
	// Trace is of what is waited for. Nil: nothing is traced.
	Trace *trace.Tracer
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.GiftRetry, 10 * time.Minute}, {&c.GiftAge, 30 * 24 * time.Hour}, {&c.Danmaku.Age, 7 * 24 * time.Hour}, {&c.LikesGather, 100 * time.Millisecond}, {&c.StoreTimeout, 2 * time.Second},
		{&c.AnnounceEvery, 2 * time.Second}, {&c.NodeTimeout, 6 * time.Second}, {&c.ProbeEvery, time.Second}, {&c.ProbeTimeout, 3 * time.Second},
		{&c.SweepEvery, 10 * time.Second}, {&c.FollowEvery, time.Second}, {&c.GrowEvery, time.Minute},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.GiftBytes == 0 {
		c.GiftBytes = 4 << 30
	}
	if c.Danmaku.Bytes == 0 {
		c.Danmaku.Bytes = 4 << 30
	}
	if c.PendingMessages == 0 {
		c.PendingMessages = 8192
	}
	return c
}

// link is what a node's way to NATS needs of it, with defaults.
func (c Config) link() link.Config {
	return link.Config{
		NodeID: c.NodeID, URLs: c.URLs, Credentials: c.Credentials, TLS: c.TLS,
		DataDir: c.DataDir, DiskMost: store.DiskMost(c.GiftBytes, c.Danmaku.Bytes), MemoryMost: store.MemoryMost,
		StoreTimeout: c.StoreTimeout, ProbeTimeout: c.ProbeTimeout, FollowEvery: c.FollowEvery,
		Metrics: link.NewMetrics(c.Metrics), Trace: c.Trace,
	}
}

// store is what it says of what is stored, with defaults.
func (c Config) store() store.Config {
	return store.Config{
		NodeID: c.NodeID, DataDir: c.DataDir, GiftBytes: c.GiftBytes, GiftAge: c.GiftAge, Danmaku: c.Danmaku, GiftRetry: c.GiftRetry,
		LikesGather: c.LikesGather, StoreTimeout: c.StoreTimeout, MeasureEvery: c.ProbeEvery, GrowEvery: c.GrowEvery,
		Metrics: store.NewMetrics(c.Metrics),
	}
}

// Validate returns every fault of the configuration, joined, each with its field; nil when there is none.
func (c Config) Validate() error {
	c = c.withDefaults()
	var faults []error
	fault := func(field, format string, args ...any) {
		faults = append(faults, fmt.Errorf("fanout: %s: %s", field, fmt.Sprintf(format, args...)))
	}
	if !protocol.ValidID(c.NodeID) {
		fault("NodeID", "want 1 to 64 of A-Z a-z 0-9 _ . : @ -, have %q", c.NodeID)
	}
	if len(c.URLs) == 0 && c.DataDir == "" {
		fault("DataDir", "the embedded NATS server needs a directory")
	}
	for i, u := range c.URLs {
		if why := urlFault(u); why != "" {
			fault(fmt.Sprintf("URLs[%d]", i), "%s", why) // without the URL: it may carry a password
		}
	}
	if c.Credentials != "" {
		if _, err := os.ReadFile(c.Credentials); err != nil {
			fault("Credentials", "%v", err)
		}
	}
	if len(c.URLs) == 0 && (c.Credentials != "" || c.TLS != nil) {
		fault("Credentials, TLS", "the embedded NATS server has no use for them")
	}
	for field, n := range map[string]int64{
		"GiftBytes": c.GiftBytes, "GiftAge": int64(c.GiftAge), "Danmaku.Age": int64(c.Danmaku.Age), "Danmaku.Bytes": c.Danmaku.Bytes, "GiftRetry": int64(c.GiftRetry), "LikesGather": int64(c.LikesGather), "StoreTimeout": int64(c.StoreTimeout), "AnnounceEvery": int64(c.AnnounceEvery),
		"ProbeEvery": int64(c.ProbeEvery), "SweepEvery": int64(c.SweepEvery), "FollowEvery": int64(c.FollowEvery), "GrowEvery": int64(c.GrowEvery),
		"PendingMessages": int64(c.PendingMessages),
	} {
		if n < 0 {
			fault(field, "want more than 0, have %d", n)
		}
	}
	if c.NodeTimeout < 2*c.AnnounceEvery {
		fault("NodeTimeout", "want at least twice AnnounceEvery (%v), have %v", c.AnnounceEvery, c.NodeTimeout)
	}
	if c.ProbeTimeout < 2*c.ProbeEvery {
		fault("ProbeTimeout", "want at least twice ProbeEvery (%v), have %v", c.ProbeEvery, c.ProbeTimeout)
	}
	return errors.Join(faults...)
}

// urlFault says what is wrong with a server's URL, without repeating it.
func urlFault(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "not a URL"
	case u.Scheme != "nats" && u.Scheme != "tls":
		return "want nats:// or tls://"
	case u.Hostname() == "":
		return "no host"
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return "want nothing after the port"
	}
	return ""
}
