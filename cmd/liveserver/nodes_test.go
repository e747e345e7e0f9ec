package main

import (
	"context"
	"strings"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"liveroom/internal/config"
)

// natsServer starts a NATS server of the test's own, as an operator would run one, and returns its URL.
func natsServer(t *testing.T) string {
	t.Helper()
	s, err := natsserver.NewServer(&natsserver.Options{
		Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		JetStreamMaxStore: 16 << 30, JetStreamMaxMemory: 1 << 30,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the NATS server is not ready")
	}
	return s.ClientURL()
}

func TestNodeIDs(t *testing.T) {
	for _, tc := range []struct {
		cfg        config.Config
		begin, end string
	}{
		{config.Config{NodeID: "mine", NATS: []string{"nats://h"}}, "mine", "mine"},
		{config.Config{NATS: []string{"nats://h"}, Addr: ":8082"}, "", "-8082"},
		{config.Config{NATS: []string{config.NATSEmbedded}, Addr: ":8082"}, strings.TrimSuffix(nodeID(config.Config{NATS: []string{"nats://h"}, Addr: ":1"}), "-1"), ""},
	} {
		if id := nodeID(tc.cfg); !strings.HasPrefix(id, tc.begin) || !strings.HasSuffix(id, tc.end) || len(id) == 0 {
			t.Errorf("%+v: %q", tc.cfg, id)
		}
	}
}

func TestUnreachableNATSIsNamed(t *testing.T) {
	err := run(context.Background(), append(serverArgs(t.TempDir()), "-nats", "nats://ann:hidden@127.0.0.1:1"), &lines{}, &lines{}, nil)
	if err == nil || !strings.Contains(err.Error(), "nats: allowed is servers that can be reached") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("the server ended with %v", err)
	}
}
