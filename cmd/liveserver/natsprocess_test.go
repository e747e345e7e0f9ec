package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// asNATS makes the test binary a NATS server with its streams in that directory, on the port that follows it.
const asNATS = "LIVESERVER_AS_NATS"

// natsFile in a NATS server's directory is its configuration, read again at SIGHUP, in place of what a server alone has.
const natsFile = "nats.conf"

// serveNATS runs until the process is killed.
func serveNATS(dir, port string) {
	var n int
	fmt.Sscan(port, &n)
	opts := &natsserver.Options{
		Host: "127.0.0.1", Port: n, JetStream: true, StoreDir: dir, SyncAlways: true, NoSigs: true, NoLog: true,
		JetStreamMaxStore: 16 << 30, JetStreamMaxMemory: 1 << 30,
	}
	switch configured, err := natsserver.ProcessConfigFile(filepath.Join(dir, natsFile)); {
	case err == nil:
		opts = configured
	case !errors.Is(err, os.ErrNotExist):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s, err := natsserver.NewServer(opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s.Start()
	select {}
}

// newNATS is a NATS server that can be killed.
func newNATS(t *testing.T) *child {
	return newChild(t, func(address, dir string) string {
		_, port, _ := net.SplitHostPort(address)
		return asNATS + "=" + dir + "|" + port
	})
}

// newNATSCluster is so many of them, one cluster if there are several; none is started.
func newNATSCluster(t *testing.T, servers int) []*child {
	t.Helper()
	cluster, routes := make([]*child, servers), make([]string, servers)
	for i := range cluster {
		cluster[i], routes[i] = newNATS(t), freeAddress(t)
	}
	for i, n := range cluster {
		if servers == 1 {
			break
		}
		var others []string
		for j, route := range routes {
			if j != i { // with its own among them a server expects one more
				others = append(others, "nats://"+route)
			}
		}
		text := fmt.Sprintf("server_name: %q\nlisten: %q\njetstream: {store_dir: %q, sync_interval: always, max_file: 16G, max_mem: 1G}\ncluster: {name: chaos, listen: %q, routes: [%s]}\n",
			natsName(i), n.address, n.dir, routes[i], strings.Join(others, ", "))
		if err := os.WriteFile(filepath.Join(n.dir, natsFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cluster
}

func natsName(i int) string { return fmt.Sprint("s", i+1) }

func natsURLs(cluster []*child) string {
	urls := make([]string, len(cluster))
	for i, n := range cluster {
		urls[i] = "nats://" + n.address
	}
	return strings.Join(urls, ",")
}

// natsLeader awaits the server that leads a stream.
func natsLeader(t *testing.T, cluster []*child, stream string) (leader *child) {
	t.Helper()
	await(t, "a leader of "+stream, func() bool {
		nc, err := nats.Connect(natsURLs(cluster), nats.Timeout(time.Second))
		if err != nil {
			return false
		}
		defer nc.Close()
		js, err := nc.JetStream(nats.MaxWait(2 * time.Second))
		if err != nil {
			return false
		}
		info, err := js.StreamInfo(stream)
		if err != nil || info.Cluster == nil {
			return false
		}
		for i, n := range cluster {
			if natsName(i) == info.Cluster.Leader {
				leader = n
			}
		}
		return leader != nil
	})
	return leader
}
