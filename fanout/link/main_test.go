package link

import (
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"liveroom/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// alone is a link to a server of its own.
func alone(t *testing.T) *Link {
	t.Helper()
	l, err := Open(t.Context(), Config{
		NodeID: "n1", DataDir: t.TempDir(), DiskMost: 1 << 30, MemoryMost: 1 << 20,
		StoreTimeout: 2 * time.Second, ProbeTimeout: time.Second, FollowEvery: time.Second, Metrics: NewMetrics(nil),
	}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	t.Cleanup(l.Shut)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The embedded server syncs what streams do not ask to be written behind.
func TestTheEmbeddedServerSyncs(t *testing.T) {
	l := alone(t)
	if cfg := l.server.running.Load().JetStreamConfig(); !cfg.SyncAlways || cfg.SyncInterval > SyncWithin {
		t.Errorf("sync always %v, interval %v", cfg.SyncAlways, cfg.SyncInterval)
	}
}

func TestRoomsUndoTheirTokens(t *testing.T) {
	for _, room := range []string{"demo", "n:3.x@y", "a b", "*.>", "=="} {
		if got := RoomOf(LastToken(GiftPrefix + protocol.Token(room))); got != room {
			t.Errorf("%q became %q", room, got)
		}
	}
}
