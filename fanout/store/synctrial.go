package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"liveroom/protocol"
)

// What is measured of servers that others run: writes to a stream on disk and to one in memory, alike in all else, in turn.
const (
	trialPrefix = "liveroom_trial_"
	trialWrites = 33
	trialAge    = time.Minute // of what a node that died over it leaves
	// syncLeast is less than a sync takes on the quickest disks, those that have a capacitor behind their cache: the sync's own
	// 20 to 40 µs and the file system's journal.
	syncLeast = 40 * time.Microsecond
)

// trial is the measuring.
type trial struct {
	*core
	replicas int
}

// syncVerdict is what the times of writes tell of a store that calls them durable.
type syncVerdict int

const (
	syncUnknown  syncVerdict = iota // the times vary by more than a sync takes
	syncMissing                     // no disk is so quick
	syncPossible                    // as slow as one that syncs, which proves nothing
)

// judgeSync compares the times of acknowledged writes to disk and to memory. It returns how much longer those to disk take, by
// the middle ones, since a few of both are always late.
func judgeSync(disk, memory []time.Duration) (extra time.Duration, v syncVerdict) {
	if len(disk) < trialWrites || len(memory) < trialWrites {
		return 0, syncUnknown
	}
	low, middle, _ := quartiles(memory)
	diskLow, diskMiddle, diskHigh := quartiles(disk)
	extra = diskMiddle - middle
	switch {
	case extra >= syncLeast:
		return extra, syncPossible
	// A quarter of each may lie as far off as this without a reason: then the middle ones say nothing either.
	case middle-low >= syncLeast || diskMiddle-diskLow >= syncLeast || diskHigh-diskMiddle >= 4*syncLeast:
		return extra, syncUnknown
	}
	return extra, syncMissing
}

func quartiles(d []time.Duration) (low, middle, high time.Duration) {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/4], d[len(d)/2], d[3*len(d)/4]
}

// run warns when the NATS servers acknowledge gifts so soon that they can't have synced them.
func (t trial) run(ctx context.Context) {
	disk, memory, err := t.timeWrites(ctx, protocol.Token(t.cfg.NodeID))
	if err != nil {
		if ctx.Err() == nil {
			t.log.Info("whether the NATS servers sync what they acknowledge was not measured", "err", err)
		}
		return
	}
	extra, verdict := judgeSync(disk, memory)
	t.metrics.syncing.Set(max(0, extra).Seconds())
	switch verdict {
	case syncMissing:
		t.log.Warn("the NATS servers acknowledge a gift sooner than a disk can have synced it: a power cut may take what was acknowledged; set jetstream { sync_interval: always } on each",
			"longer_than_memory", extra, "a_sync_takes", syncLeast)
	case syncUnknown:
		t.log.Info("whether the NATS servers sync what they acknowledge can't be judged from here: their times vary too much", "longer_than_memory", extra)
	case syncPossible:
		t.log.Debug("the NATS servers take their time for a write to disk", "longer_than_memory", extra)
	}
}

// timeWrites returns how long acknowledged writes take, and leaves nothing behind. The name is of its own streams.
func (t trial) timeWrites(ctx context.Context, name string) (disk, memory []time.Duration, err error) {
	stream := func(kind string, storage jetstream.StorageType) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, max(t.cfg.StoreTimeout, streamTimeout))
		defer cancel()
		subject := "lr.trial." + kind + "." + name
		_, err := t.link.JS.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: trialName(kind, name), Subjects: []string{subject}, Storage: storage, Replicas: t.replicas,
			MaxMsgs: 1, MaxAge: trialAge, Duplicates: time.Second,
		})
		return subject, err
	}
	subjects := [2]string{}
	for i, storage := range []jetstream.StorageType{jetstream.FileStorage, jetstream.MemoryStorage} {
		kind := [...]string{"disk", "memory"}[i]
		if subjects[i], err = stream(kind, storage); err != nil {
			return nil, nil, fmt.Errorf("stream for a trial: %w", err)
		}
		defer t.end(trialName(kind, name))
	}
	times := [2][]time.Duration{}
	body := make([]byte, 256) // as a gift
	for n := range 2 * (trialWrites + 1) {
		ctx, cancel := t.link.Bounded(ctx)
		began := time.Now()
		_, err := t.link.JS.Publish(ctx, subjects[n%2], body)
		took := time.Since(began)
		cancel()
		if err != nil {
			return nil, nil, fmt.Errorf("trial: %w", err)
		}
		if n >= 2 { // the first of each makes a file
			times[n%2] = append(times[n%2], took)
		}
	}
	return times[0], times[1], nil
}

func trialName(kind, name string) string { return trialPrefix + kind + "_" + name }

// end may fail: what is left is empty after trialAge, and the next start uses it again.
func (t trial) end(stream string) {
	ctx, cancel := context.WithTimeout(context.Background(), t.cfg.StoreTimeout)
	defer cancel()
	if err := t.link.JS.DeleteStream(ctx, stream); err != nil {
		t.log.Debug("a stream for a trial is left", "err", err)
	}
}
