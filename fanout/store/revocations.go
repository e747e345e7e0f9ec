package store

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
	"liveroom/internal/lock"
)

// RevokedFor is how long the nodes remember that something was revoked.
const RevokedFor = 30 * 24 * time.Hour

// revocationsMost bounds what is remembered for a store that is lost, some 40 MB; beyond that the oldest are of the store alone.
const revocationsMost = 500_000

// Revocations keep what is revoked.
type Revocations struct {
	*core
	told atomic.Pointer[func(string, time.Time, bool)] // who is told what is revoked here

	mu lock.Mutex[lock.Leaf]
	at map[string]time.Time // what this node knows, for a store that is lost; guarded by mu
}

// Revoke tells all nodes, those to come included, that what goes by a name has been revoked as of at. On this node it holds
// at once, also after an error. It returns once that is stored: ErrUnknown when the store did not answer in time, ErrRefused
// when nothing was stored; the same may be said again.
func (v *Revocations) Revoke(ctx context.Context, name string, at time.Time) error {
	if h := v.told.Load(); h != nil {
		(*h)(name, at, false)
	}
	v.remember(name, at)
	if err := v.mayStore(link.RoadRevoke); err != nil {
		return err
	}
	ctx, cancel := v.link.Bounded(ctx)
	defer cancel()
	revision, err := v.buckets.revoked.PutString(ctx, revokedKey(name), revokedValue(at))
	if err != nil {
		return fmt.Errorf("%w: revoke: %w", storeFailure(err), err)
	}
	v.marks.met(revokedStream, revision)
	return nil
}

func revokedKey(name string) string    { return base64.RawURLEncoding.EncodeToString([]byte(name)) }
func revokedValue(at time.Time) string { return strconv.FormatInt(at.UnixMilli(), 10) }

func (v *Revocations) remember(name string, at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if was, ok := v.at[name]; at.After(was) && (ok || len(v.at) < revocationsMost) {
		v.at[name] = at
	}
}

// restore writes what this node knows to be revoked into a store that was lost.
func (v *Revocations) restore(ctx context.Context) error {
	v.mu.Lock()
	all := maps.Clone(v.at)
	v.mu.Unlock()
	for name, at := range all {
		if time.Since(at) > RevokedFor {
			continue
		}
		ctx, cancel := v.link.Bounded(ctx)
		_, err := v.buckets.revoked.Create(ctx, revokedKey(name), []byte(revokedValue(at)))
		cancel()
		if err != nil && !errors.Is(err, jetstream.ErrKeyExists) { // another node was faster
			return fmt.Errorf("restore what is revoked: %w", err)
		}
	}
	info, err := v.link.StreamInfo(ctx, revokedStream)
	if err == nil {
		v.marks.revoked(streamName(info))
	}
	return err
}

// FollowRevoked calls h with everything that is revoked and then with what is from now on, until stop is called. known tells
// that it was revoked before. What [Revocations.Revoke] says on this node comes at once, from its goroutine, and may come again; so
// may everything else after the store was lost. It returns when h has seen all that was stored. There is one follower at a time.
func (v *Revocations) FollowRevoked(ctx context.Context, h func(name string, at time.Time, known bool)) (stop func(), err error) {
	known := true
	r := &link.Reader{Link: v.link, Stream: revokedStream, Subject: link.BucketPrefix(link.RevokedBucket) + "*", Take: func(m link.Record) { v.tell(m, known, h) }}
	w := v.link.Follow(link.FollowRevocations, r.Read)
	v.told.Store(&h)
	if err := w.Hear(link.RevokedNewsPrefix + "*"); err != nil {
		return nil, err
	}
	if err := w.LookOnce(ctx); err != nil {
		w.Forget()
		return nil, fmt.Errorf("read what is revoked: %w", err)
	}
	known = false
	return w.Start(), nil
}

func (v *Revocations) tell(m link.Record, known bool, h func(string, time.Time, bool)) {
	name, err := base64.RawURLEncoding.DecodeString(link.LastToken(m.Subject))
	if err != nil || len(m.Data) == 0 { // a key that somebody removed
		return
	}
	ms, err := strconv.ParseInt(string(m.Data), 10, 64)
	if err != nil {
		v.log.Warn("a revocation can't be read", "err", err)
		return
	}
	v.remember(string(name), time.UnixMilli(ms))
	v.marks.met(revokedStream, m.Seq)
	h(string(name), time.UnixMilli(ms), known)
}
