package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Sentinel starts one Sentinel that watches this server under a name, with a
// quorum of one, and returns when it knows as many replicas as it should.
func (s *Server) Sentinel(t testing.TB, name string, replicas int) *Server {
	t.Helper()
	host, port, _ := net.SplitHostPort(s.Addr)
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor %s %s %s 1\nsentinel down-after-milliseconds %s 500\nsentinel failover-timeout %s 2000\n", name, host, port, name, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	watcher := start(t, file, "--sentinel")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		list, _ := watcher.Client().Do(ctx, "SENTINEL", "REPLICAS", name).Slice()
		if len(list) >= replicas {
			return watcher
		}
		if ctx.Err() != nil {
			t.Fatal("Sentinel does not see the replicas")
		}
		wait(ctx, 20*time.Millisecond)
	}
}
