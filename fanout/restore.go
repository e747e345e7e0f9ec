package fanout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A cluster that has just started has no leader for a while; opening waits for it so long.
const (
	leaderWait  = 30 * time.Second
	leaderRetry = 250 * time.Millisecond
)

// openStore opens the streams, and waits for a cluster that is not yet ready.
func (f *Fabric) openStore(ctx context.Context) (buckets, error) {
	for start := time.Now(); ; {
		b, _, err := f.openStreams(ctx)
		if err == nil || ctx.Err() != nil || !notReady(err) || time.Since(start) > leaderWait {
			return b, err
		}
		select {
		case <-time.After(leaderRetry):
		case <-ctx.Done():
			return b, errors.Join(err, ctx.Err())
		}
	}
}

func notReady(err error) bool {
	for _, silence := range []error{context.DeadlineExceeded, nats.ErrNoResponders, jetstream.ErrNoStreamResponse} {
		if errors.Is(err, silence) {
			return true
		}
	}
	return apiCode(err) == errCodeUnavailable
}

// lookAfterStreams asks for care.
func (f *Fabric) lookAfterStreams() {
	now := time.Now()
	f.reopen.Store(&now)
	f.careSoon.soon()
}

// care looks after the streams when they may be gone, or may have more replicas.
func (f *Fabric) care(ctx context.Context) {
	asked := f.reopen.Load()
	if asked == nil && !f.mayGrow() || !f.connected() {
		return
	}
	if err := f.restore(ctx); err != nil {
		if ctx.Err() == nil {
			f.log.Warn("streams cannot be looked after yet", "err", err)
			f.careSoon.soon()
		}
		return
	}
	if f.reopen.CompareAndSwap(asked, nil) {
		f.sweepSoon.soon()
	}
}

// restore looks after the streams, and tells a store that came back empty what this node knows.
func (f *Fabric) restore(ctx context.Context) error {
	_, anew, err := f.openStreams(ctx)
	for name, is := range anew {
		if is && !(f.server != nil && name == recentStream) { // that lives in memory, and goes when the store is opened again
			f.log.Error("a stream was gone and is made anew; what this node knows of it is written again", "stream", name)
		}
	}
	errs := []error{err}
	if err == nil {
		errs = append(errs, f.restoreRules(ctx), f.restoreSettings(ctx, anew[settingsStream]))
	}
	if anew[clusterStream] {
		errs = append(errs, f.restoreSecrets(ctx))
	}
	if anew[revokedStream] {
		errs = append(errs, f.restoreRevoked(ctx))
	}
	if anew[likesStream] {
		errs = append(errs, f.healLikes(ctx, f.shownLikes()))
	}
	return errors.Join(errs...)
}

// restoreRules writes the newest set that this node knows, unless the store has what somebody decided, or restored from a copy
// as new.
func (f *Fabric) restoreRules(ctx context.Context) error {
	for ctx.Err() == nil {
		known := f.rules.Load()
		if known == nil {
			return nil
		}
		after, err := f.lastVersion(ctx)
		if err != nil {
			return err
		}
		stored, ok, err := f.leaderGet(ctx, rulesStream, leaderGet{Last: rulesSubject})
		if err != nil || ok && !known.outdates(stored) {
			return err
		}
		_, err = f.publishRules(ctx, record{Data: known.Data, Origin: known.decided(), Node: known.Node}, after)
		if !errors.Is(err, ErrConflict) { // else another node was faster
			return err
		}
	}
	return ctx.Err()
}

func (f *Fabric) restoreSecrets(ctx context.Context) error {
	f.mu.Lock()
	secrets := make(map[string]string, len(f.secrets))
	for name, value := range f.secrets {
		secrets[name] = value
	}
	f.mu.Unlock()
	for name, value := range secrets {
		agreed, err := f.agree(ctx, name, value)
		if err != nil {
			return err
		}
		if agreed != value {
			f.log.Error("the nodes have agreed on another secret; restart this node", "name", name)
		}
	}
	return nil
}

// restoreSettings does the same for the rooms that have members: all when the stream was lost, else those that were handed an
// older copy than they have.
func (f *Fabric) restoreSettings(ctx context.Context, lost bool) error {
	for _, s := range f.subscriptions() {
		if s.outdated.Swap(false) || lost {
			if err := f.restoreRoom(ctx, s); err != nil {
				s.outdated.Store(true)
				return fmt.Errorf("restore settings of room %s: %w", s.room, err)
			}
		}
	}
	return nil
}

func (f *Fabric) restoreRoom(ctx context.Context, s *Subscription) error {
	for ctx.Err() == nil {
		known := s.settings.Load()
		if known == nil || known.Data == nil {
			return nil
		}
		stored, ok, err := f.leaderGet(ctx, settingsStream, leaderGet{Last: settingsSubject(s.room)})
		if err != nil || ok && !known.outdates(stored) {
			return err
		}
		_, err = f.putSettings(ctx, s.room, record{Data: known.Data, Origin: known.decided()}, stored.Seq)
		if !errors.Is(err, ErrConflict) { // else another node was faster
			return err
		}
	}
	return ctx.Err()
}
