package fanout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/protocol"
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
	f.reopen.Store(time.Now().UnixNano())
	f.careSoon.soon()
}

// care looks after the streams when they may be gone, or may have more replicas.
func (f *Fabric) care(ctx context.Context) {
	asked := f.reopen.Load()
	if asked == 0 && !f.mayGrow() || !f.connected() {
		return
	}
	if err := f.restore(ctx); err != nil {
		if ctx.Err() == nil {
			f.log.Warn("streams cannot be looked after yet", "err", err)
			f.careSoon.soon()
		}
		return
	}
	if f.reopen.CompareAndSwap(asked, 0) {
		f.sweepSoon.soon()
	}
}

// restore looks after the streams, and tells a store that came back empty what this node knows.
func (f *Fabric) restore(ctx context.Context) error {
	_, anew, err := f.openStreams(ctx)
	for name, is := range anew {
		if is {
			f.log.Error("a stream was gone and is made anew; what this node knows of it is written again", "stream", name)
		}
	}
	errs := []error{err}
	if anew[rulesStream] {
		errs = append(errs, f.restoreRules(ctx))
	}
	if anew[clusterStream] {
		errs = append(errs, f.restoreSecrets(ctx))
	}
	if anew[likesStream] {
		errs = append(errs, f.healLikes(ctx, f.shownLikes()))
	}
	if anew[settingsStream] {
		errs = append(errs, f.restoreSettings(ctx))
	}
	return errors.Join(errs...)
}

func (f *Fabric) restoreRules(ctx context.Context) error {
	r := f.rules.Load()
	if r == nil {
		return nil
	}
	after, err := f.lastVersion(ctx)
	if err != nil {
		return err
	}
	if _, err := f.PublishRules(ctx, r.Payload, after); err != nil && !errors.Is(err, ErrConflict) { // another node was faster
		return err
	}
	return nil
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

func (f *Fabric) restoreSettings(ctx context.Context) error {
	for _, s := range f.subscriptions() {
		payload := s.settings.Load()
		if payload == nil || *payload == nil {
			continue
		}
		ctx, cancel := f.storeContext(ctx)
		_, err := f.buckets.settings.Create(ctx, protocol.Token(s.room), *payload)
		cancel()
		if err != nil && !errors.Is(err, jetstream.ErrKeyExists) { // another node was faster
			return fmt.Errorf("restore settings of room %s: %w", s.room, err)
		}
	}
	return nil
}
