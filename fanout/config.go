package fanout

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"liveroom/protocol"
)

// Config configures a [Fabric]. Zero fields take the defaults that are named with them. Nodes on one NATS share its
// streams and should agree on their bounds and ages: the node that starts last sets them.
type Config struct {
	// NodeID names this node among all: [A-Za-z0-9_.:@-]{1,64}. Required.
	NodeID string
	// DataDir is where the embedded server keeps its streams (in the folder nats). Required without URLs.
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
	// Replicas of each stream, 1 to 5. Default: 1 embedded, else min(3, servers of the cluster that can hold the streams),
	// and more as soon as there are more, see [Config.GrowEvery]; never fewer again.
	Replicas int
	// Shared says that this node has a quota store that all nodes share. A node without one must be alone on its NATS
	// servers, else each of them would grant the whole of every quota; see [ErrNotShared].
	Shared bool

	// GiftRetry is how long a gift's id is remembered, the stream's duplicate window. Default 10 minutes.
	GiftRetry time.Duration
	// GiftAge is how long the ledger keeps a gift. Default 30 days.
	GiftAge time.Duration
	// GiftBytes bounds the ledger; a gift beyond it is refused. Default 4 GiB.
	GiftBytes int64
	// RecentAge is how long a danmaku can be read again. Default 5 minutes.
	RecentAge time.Duration
	// RecentPerRoom bounds the danmaku of one room that can be read again. Default 200.
	RecentPerRoom int
	// RecentBytes bounds those of all rooms, in memory; the oldest go first. Default 64 MiB.
	RecentBytes int64
	// LikesAge is how long a room's total outlives its last like. Default 30 days.
	LikesAge time.Duration
	// LikesGather is how long likes of different rooms are gathered for one write. Default 100 ms.
	LikesGather time.Duration
	// SettingsAge is how long a room's settings outlive their last change or its last member. Default 90 days.
	SettingsAge time.Duration
	// StoreTimeout bounds each wait for JetStream. Default 2 seconds.
	StoreTimeout time.Duration

	// AnnounceEvery is the period of presence. Default 2 seconds.
	AnnounceEvery time.Duration
	// NodeTimeout is the silence after which another node's counts are dropped. Default 6 seconds.
	NodeTimeout time.Duration
	// ProbeEvery is the period of the message to ourselves. Default 1 second.
	ProbeEvery time.Duration
	// ProbeTimeout is how long it may be missing before the connection is called deaf and made anew. Default 3 seconds.
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
	// PendingBytes bounds the same in bytes. Default 16 MiB.
	PendingBytes int

	// Metrics counts. Nil: counted for nobody.
	Metrics *Metrics
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&c.GiftRetry, 10*time.Minute)
	set(&c.GiftAge, 30*24*time.Hour)
	set(&c.RecentAge, 5*time.Minute)
	set(&c.LikesAge, 30*24*time.Hour)
	set(&c.LikesGather, 100*time.Millisecond)
	set(&c.SettingsAge, 90*24*time.Hour)
	set(&c.StoreTimeout, 2*time.Second)
	set(&c.AnnounceEvery, 2*time.Second)
	set(&c.NodeTimeout, 6*time.Second)
	set(&c.ProbeEvery, time.Second)
	set(&c.ProbeTimeout, 3*time.Second)
	set(&c.SweepEvery, 10*time.Second)
	set(&c.FollowEvery, time.Second)
	set(&c.GrowEvery, time.Minute)
	if c.GiftBytes == 0 {
		c.GiftBytes = 4 << 30
	}
	if c.RecentPerRoom == 0 {
		c.RecentPerRoom = 200
	}
	if c.RecentBytes == 0 {
		c.RecentBytes = 64 << 20
	}
	if c.PendingMessages == 0 {
		c.PendingMessages = 8192
	}
	if c.PendingBytes == 0 {
		c.PendingBytes = 16 << 20
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics(nil)
	}
	return c
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
	if c.Replicas < 0 || c.Replicas > 5 || len(c.URLs) == 0 && c.Replicas > 1 {
		fault("Replicas", "want 1 to 5, and 1 for the embedded server, have %d", c.Replicas)
	}
	for _, d := range []struct {
		field string
		value time.Duration
		least time.Duration
	}{
		{"GiftRetry", c.GiftRetry, time.Second}, {"GiftAge", c.GiftAge, time.Second},
		{"RecentAge", c.RecentAge, time.Second}, {"LikesAge", c.LikesAge, time.Minute},
		{"SettingsAge", c.SettingsAge, time.Minute}, {"LikesGather", c.LikesGather, time.Millisecond},
		{"StoreTimeout", c.StoreTimeout, time.Millisecond}, {"AnnounceEvery", c.AnnounceEvery, time.Millisecond},
		{"ProbeEvery", c.ProbeEvery, time.Millisecond}, {"SweepEvery", c.SweepEvery, time.Millisecond},
		{"FollowEvery", c.FollowEvery, time.Millisecond}, {"GrowEvery", c.GrowEvery, time.Millisecond},
	} {
		if d.value < d.least {
			fault(d.field, "want at least %v, have %v", d.least, d.value)
		}
	}
	if c.GiftAge < c.GiftRetry {
		fault("GiftAge", "want at least GiftRetry (%v), have %v", c.GiftRetry, c.GiftAge)
	}
	if c.NodeTimeout < 2*c.AnnounceEvery {
		fault("NodeTimeout", "want at least twice AnnounceEvery (%v), have %v", c.AnnounceEvery, c.NodeTimeout)
	}
	if c.ProbeTimeout < 2*c.ProbeEvery {
		fault("ProbeTimeout", "want at least twice ProbeEvery (%v), have %v", c.ProbeEvery, c.ProbeTimeout)
	}
	for _, n := range []struct {
		field        string
		value, least int64
	}{
		{"GiftBytes", c.GiftBytes, 1 << 20}, {"RecentBytes", c.RecentBytes, 1 << 20},
		{"RecentPerRoom", int64(c.RecentPerRoom), 1},
		{"PendingMessages", int64(c.PendingMessages), 1}, {"PendingBytes", int64(c.PendingBytes), 1 << 16},
	} {
		if n.value < n.least {
			fault(n.field, "want at least %d, have %d", n.least, n.value)
		}
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
