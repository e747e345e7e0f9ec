package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
)

// A cluster that has just started has no leader for a while; opening waits for it so long.
const (
	leaderWait  = 30 * time.Second
	leaderRetry = 250 * time.Millisecond
)

// openStore opens the streams, and waits for a cluster that is not yet ready.
func (s *Store) openStore(ctx context.Context) error {
	for start := time.Now(); ; {
		_, err := s.openStreams(ctx)
		if err == nil {
			return s.openBuckets(ctx)
		}
		if ctx.Err() != nil || !notReady(err) || time.Since(start) > leaderWait {
			return err
		}
		if !link.Rest(ctx, leaderRetry) {
			return errors.Join(err, ctx.Err())
		}
	}
}

func (s *Store) openBuckets(ctx context.Context) (err error) {
	for name, handle := range map[string]*jetstream.KeyValue{
		link.SettingsBucket: &s.buckets.settings, link.NodesBucket: &s.buckets.nodes, link.ClusterBucket: &s.buckets.cluster, link.RevokedBucket: &s.buckets.revoked,
	} {
		if *handle, err = s.link.JS.KeyValue(ctx, name); err != nil {
			return fmt.Errorf("bucket %s: %w", name, err)
		}
	}
	return nil
}

func notReady(err error) bool {
	for _, silence := range []error{context.DeadlineExceeded, nats.ErrNoResponders, jetstream.ErrNoStreamResponse} {
		if errors.Is(err, silence) {
			return true
		}
	}
	return apiCode(err) == errCodeUnavailable
}

// care looks after the streams when they may be gone, or may have more replicas.
func (s *Store) care(ctx context.Context) {
	asked := s.reopen.Load()
	if asked == nil && !s.mayGrow() || !s.link.Connected() {
		return
	}
	if err := s.restore(ctx); err != nil {
		if ctx.Err() == nil {
			s.log.Warn("streams cannot be looked after yet", "err", err)
			s.careSoon.Soon()
		}
		return
	}
	if s.reopen.CompareAndSwap(asked, nil) {
		s.rooms.SweepSoon()
	}
}

// restore looks after the streams, and tells a store that came back empty what this node knows.
func (s *Store) restore(ctx context.Context) error {
	anew, err := s.openStreams(ctx)
	for name, is := range anew {
		if is && !(s.link.Embedded() && name == link.RecentStream) { // that lives in memory, and goes when the store is opened again
			s.log.Error("a stream was gone and is made anew; what this node knows of it is written again", "stream", name)
		}
	}
	errs := []error{err}
	if err == nil {
		errs = append(errs, s.Rules.restore(ctx), s.Catalogue.restore(ctx), s.Filter.restore(ctx), s.Settings.restore(ctx, anew[settingsStream]))
	}
	if anew[clusterStream] {
		errs = append(errs, s.Secrets.restore(ctx))
	}
	if anew[revokedStream] {
		errs = append(errs, s.Revoked.restore(ctx))
	}
	if anew[link.LikesStream] {
		errs = append(errs, s.Likes.heal(ctx, s.here.totals()))
	}
	return errors.Join(errs...)
}

// restoreNewest writes what this node goes by, unless the store has what somebody decided, or restored from a copy
// as new. write is told the stored one's sequence, and the stream's last from before that was read: whatever somebody stores
// meanwhile, it is not written over.
func (c *core) restoreNewest(ctx context.Context, stream, subject string, newest func() link.Record, write func(r link.Record, stored, last uint64) error) error {
	for ctx.Err() == nil {
		known := newest()
		if known.Data == nil {
			return nil
		}
		info, err := c.link.StreamInfo(ctx, stream)
		if err != nil {
			return err
		}
		stored, ok, err := c.link.LeaderGet(ctx, stream, link.Ask{Last: subject})
		if err != nil || ok && !known.Outdates(stored) {
			return err
		}
		err = write(link.Record{Data: known.Data, Origin: known.Decided(), Node: known.Node}, stored.Seq, info.State.LastSeq)
		if !errors.Is(err, ErrConflict) { // else another node was faster
			return err
		}
	}
	return ctx.Err()
}

// checkStore compares the streams with this node's marks, before anything is written: what is shorter or another one is said
// with both numbers, and no sequence of a gift is given out again.
func (s *Store) checkStore(ctx context.Context, known bool) error {
	was := s.marks.read()
	if err := s.checkRevoked(ctx, was); err != nil {
		return err
	}
	for _, name := range []string{link.RulesStream, link.CatalogueStream, link.FilterStream, settingsStream} {
		info, err := s.link.StreamInfo(ctx, name)
		if err != nil {
			return err
		}
		if end, last := info.State.LastSeq, was.Last[name]; end < last || last > 0 && info.State.FirstSeq > last {
			s.log.Error("a stream is shorter than what this node knows of it", "stream", name, "last", end, "acknowledged", last)
			s.Gifts.lose(fmt.Errorf("%w: %s ends at %d, and %d was acknowledged", ErrLedger, name, end, last))
		}
		if info.State.Msgs > 0 {
			s.marks.met(name, info.State.LastSeq)
		}
	}
	return s.Gifts.check(ctx, was, known)
}

// checkRevoked refuses a store that knows less of what was revoked than this node: a token would be good again.
func (s *Store) checkRevoked(ctx context.Context, was marked) error {
	info, err := s.link.StreamInfo(ctx, revokedStream)
	if err != nil {
		return err
	}
	count, have := uint64(0), info.State
	for from := uint64(1); ; {
		got, err := s.link.Read(ctx, revokedStream, link.Ask{Seq: from, Next: link.BucketPrefix(link.RevokedBucket) + ">", Batch: readBatch})
		if err != nil {
			return fmt.Errorf("read what is revoked: %w", err)
		}
		if len(got) == 0 {
			break
		}
		count += uint64(len(got))
		from = got[len(got)-1].Seq + 1
	}
	last, another := was.Last[revokedStream], was.Revoked != "" && was.Revoked != streamName(info)
	if last > 0 && another || have.LastSeq < last || count < have.Msgs {
		return fmt.Errorf("%w: of what was revoked it has %d of %d, up to number %d, and %d was acknowledged; put a newer copy of %s back, or remove %s from the data directory to go on without what is missing",
			ErrLedger, count, have.Msgs, have.LastSeq, last, s.storePath(revokedStream), MarksFile)
	}
	s.marks.revoked(streamName(info))
	if have.Msgs > 0 {
		s.marks.met(revokedStream, have.LastSeq)
	}
	return nil
}
