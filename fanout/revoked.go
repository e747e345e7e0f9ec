package fanout

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/internal/lock"
)

// RevokedFor is how long the nodes remember that something was revoked.
const RevokedFor = 30 * 24 * time.Hour

// Revoke tells all nodes, those to come included, that what goes by a name has been revoked as of at. On this node it holds
// at once, also after an error. It returns once that is stored: ErrUnknown when the store did not answer in time, ErrRefused
// when nothing was stored; the same may be said again.
func (f *Fabric) Revoke(ctx context.Context, name string, at time.Time) error {
	if h := f.revoker.Load(); h != nil {
		(*h)(name, at, false)
	}
	f.revocations.add(name, at)
	if err := f.mayStore(roadRevoke); err != nil {
		return err
	}
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	revision, err := f.buckets.revoked.PutString(ctx, revokedKey(name), revokedValue(at))
	if err != nil {
		return fmt.Errorf("%w: revoke: %w", storeFailure(err), err)
	}
	f.marks.met(revokedStream, revision)
	return nil
}

func revokedKey(name string) string    { return base64.RawURLEncoding.EncodeToString([]byte(name)) }
func revokedValue(at time.Time) string { return strconv.FormatInt(at.UnixMilli(), 10) }

// revocations are what this node knows to be revoked, for a store that is lost. Safe for concurrent use.
type revocations struct {
	mu lock.Mutex[lock.Leaf]
	at map[string]time.Time // guarded by mu
}

// revocationsMost bounds what is remembered for the store, some 40 MB; beyond that the oldest are of the store alone.
const revocationsMost = 500_000

func (r *revocations) add(name string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == nil {
		r.at = map[string]time.Time{}
	}
	if was, ok := r.at[name]; at.After(was) && (ok || len(r.at) < revocationsMost) {
		r.at[name] = at
	}
}

func (r *revocations) all() map[string]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.at)
}

// restoreRevoked writes what this node knows to be revoked into a store that was lost.
func (f *Fabric) restoreRevoked(ctx context.Context) error {
	for name, at := range f.revocations.all() {
		if time.Since(at) > RevokedFor {
			continue
		}
		ctx, cancel := f.storeContext(ctx)
		_, err := f.buckets.revoked.Create(ctx, revokedKey(name), []byte(revokedValue(at)))
		cancel()
		if err != nil && !errors.Is(err, jetstream.ErrKeyExists) { // another node was faster
			return fmt.Errorf("restore what is revoked: %w", err)
		}
	}
	info, err := f.streamInfo(ctx, revokedStream)
	if err == nil {
		f.marks.revoked(streamName(info))
	}
	return err
}

// FollowRevoked calls h with everything that is revoked and then with what is from now on, until stop is called. known tells
// that it was revoked before. What [Fabric.Revoke] says on this node comes at once, from its goroutine, and may come again; so
// may everything else after the store was lost. It returns when h has seen all that was stored. There is one follower at a time.
func (f *Fabric) FollowRevoked(ctx context.Context, h func(name string, at time.Time, known bool)) (stop func(), err error) {
	known := true
	r := &reader{f: f, stream: revokedStream, subject: "$KV." + revokedBucket + ".*", take: func(m record) { f.tellRevoked(m, known, h) }}
	w := f.lookOften(FollowRevocations, r.read)
	f.revoker.Store(&h)
	sub, err := f.live.Subscribe(revokedNewsPrefix+"*", func(*nats.Msg) { w.news.soon() })
	if err != nil {
		return nil, fmt.Errorf("subscribe to revocations: %w", err)
	}
	if err := w.lookOnce(ctx); err != nil {
		_ = sub.Unsubscribe() // fails only on a closed connection, where there is nothing to undo
		return nil, fmt.Errorf("read what is revoked: %w", err)
	}
	known = false
	return w.start(sub), nil
}

func (f *Fabric) tellRevoked(m record, known bool, h func(string, time.Time, bool)) {
	name, err := base64.RawURLEncoding.DecodeString(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
	if err != nil || len(m.Data) == 0 { // a key that somebody removed
		return
	}
	ms, err := strconv.ParseInt(string(m.Data), 10, 64)
	if err != nil {
		f.log.Warn("a revocation can't be read", "err", err)
		return
	}
	f.revocations.add(string(name), time.UnixMilli(ms))
	f.marks.met(revokedStream, m.Seq)
	h(string(name), time.UnixMilli(ms), known)
}
