package store

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
)

// Gifts and settings wait for the disk; like counters and what was said are written behind.
func TestWhichStreamsWaitForTheDisk(t *testing.T) {
	dir := t.TempDir()
	f, _, _ := open(t, alone(t, dir), dir, "n1")
	if link.SyncWithin > likeLogAge/2 {
		t.Errorf("counters are on disk after %v, the like log keeps %v", link.SyncWithin, likeLogAge)
	}
	for name, want := range map[string]struct {
		storage jetstream.StorageType
		mode    jetstream.PersistModeType
	}{
		link.GiftStream:    {jetstream.FileStorage, jetstream.DefaultPersistMode},
		settingsStream:     {jetstream.FileStorage, jetstream.DefaultPersistMode},
		link.LikeLogStream: {jetstream.FileStorage, jetstream.DefaultPersistMode},
		nodesStream:        {jetstream.FileStorage, jetstream.DefaultPersistMode},
		link.LikesStream:   {jetstream.FileStorage, jetstream.AsyncPersistMode},
		link.EventsStream:  {jetstream.FileStorage, jetstream.AsyncPersistMode},
	} {
		s, err := f.link.JS.Stream(testContext(t), name)
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
	s := &Store{core: &core{link: alone(t, t.TempDir()), here: newHere(), incarnation: 1 << 60}}
	for _, cfg := range s.streamConfigs() {
		if cfg.Name == nodesStream && cfg.FirstSeq > s.incarnation {
			return
		}
	}
	t.Error("starts would be numbered from the clock alone")
}
