package node

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"liveroom/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNodeIDs(t *testing.T) {
	for _, tc := range []struct {
		cfg        config.Config
		begin, end string
	}{
		{config.Config{NodeID: "mine", NATS: []string{"nats://h"}}, "mine", "mine"},
		{config.Config{NATS: []string{"nats://h"}, Addr: ":8082"}, "", "-8082"},
		{config.Config{NATS: []string{config.NATSEmbedded}, Addr: ":8082"}, strings.TrimSuffix(ID(config.Config{NATS: []string{"nats://h"}, Addr: ":1"}), "-1"), ""},
	} {
		if id := ID(tc.cfg); !strings.HasPrefix(id, tc.begin) || !strings.HasSuffix(id, tc.end) || len(id) == 0 {
			t.Errorf("%+v: %q", tc.cfg, id)
		}
	}
}
