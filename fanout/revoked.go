package fanout

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
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
	if err := f.mayStore(roadRevoke); err != nil {
		return err
	}
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	_, err := f.buckets.revoked.PutString(ctx, base64.RawURLEncoding.EncodeToString([]byte(name)), strconv.FormatInt(at.UnixMilli(), 10))
	if err != nil {
		return fmt.Errorf("%w: revoke: %w", storeFailure(err), err)
	}
	return nil
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
	h(string(name), time.UnixMilli(ms), known)
}
