package fanout

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// Gifts and settings wait for the disk; like counters are the only stream that is written behind.
func TestWhichStreamsWaitForTheDisk(t *testing.T) {
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir()})
	if cfg := f.server.running.Load().JetStreamConfig(); !cfg.SyncAlways || cfg.SyncInterval >= likeLogAge {
		t.Errorf("sync always %v, interval %v, the like log keeps %v", cfg.SyncAlways, cfg.SyncInterval, likeLogAge)
	}
	for name, want := range map[string]struct {
		storage jetstream.StorageType
		mode    jetstream.PersistModeType
	}{
		giftStream:          {jetstream.FileStorage, jetstream.DefaultPersistMode},
		settingsStream:      {jetstream.FileStorage, jetstream.DefaultPersistMode},
		likeLogStream:       {jetstream.FileStorage, jetstream.DefaultPersistMode},
		"KV_" + nodesBucket: {jetstream.FileStorage, jetstream.DefaultPersistMode},
		likesStream:         {jetstream.FileStorage, jetstream.AsyncPersistMode},
		recentStream:        {jetstream.MemoryStorage, jetstream.DefaultPersistMode},
	} {
		s, err := f.js.Stream(testContext(t), name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if cfg := s.CachedInfo().Config; cfg.Storage != want.storage || cfg.PersistMode != want.mode {
			t.Errorf("%s: %v, %v; want %v, %v", name, cfg.Storage, cfg.PersistMode, want.storage, want.mode)
		}
	}
}

// A node lets a bucket of starts that was lost begin beyond its own number, whatever the clock says.
func TestStartsAreNumberedOnAfterTheClockWasSetBack(t *testing.T) {
	f := &Fabric{cfg: Config{NodeID: "n1"}.withDefaults(), incarnation: 1 << 60}
	for _, s := range f.streamConfigs() {
		if s.Name == nodesStream && s.FirstSeq > f.incarnation {
			return
		}
	}
	t.Error("starts would be numbered from the clock alone")
}
