package fanout

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// RevokedFor is how long the nodes remember that something was revoked.
const RevokedFor = 30 * 24 * time.Hour

// Revoke tells all nodes, those to come included, that what goes by a name has been revoked as of at. It returns once
// that is stored: ErrUnknown when the store did not answer in time, ErrRefused when nothing was stored.
func (f *Fabric) Revoke(ctx context.Context, name string, at time.Time) error {
	if !f.store.IsConnected() {
		return fmt.Errorf("%w: %w", ErrRefused, ErrDisconnected)
	}
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	_, err := f.buckets.revoked.PutString(ctx, base64.RawURLEncoding.EncodeToString([]byte(name)), strconv.FormatInt(at.UnixMilli(), 10))
	if err != nil {
		return fmt.Errorf("%w: revoke: %w", storeFailure(err), err)
	}
	return nil
}

// FollowRevoked calls h with everything that is revoked and then with what is from now on, one after the other, until stop
// is called. known tells that it was revoked before. It returns when h has seen all that was stored.
func (f *Fabric) FollowRevoked(ctx context.Context, h func(name string, at time.Time, known bool)) (stop func(), err error) {
	life, cancel := context.WithCancel(context.Background())
	watch, err := f.buckets.revoked.WatchAll(life)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch what is revoked: %w", err)
	}
	complete, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		known := true
		for e := range watch.Updates() {
			if e == nil {
				known = false
				close(complete)
				continue
			}
			f.tellRevoked(e, known, h)
		}
	}()
	stop = func() {
		_ = watch.Stop() // fails only on a closed connection, where there is nothing to undo
		cancel()
		<-ended
	}
	select {
	case <-complete:
		return stop, nil
	case <-ended:
		err = ErrDisconnected
	case <-ctx.Done():
		err = ctx.Err()
	}
	stop()
	return nil, fmt.Errorf("read what is revoked: %w", err)
}

func (f *Fabric) tellRevoked(e jetstream.KeyValueEntry, known bool, h func(string, time.Time, bool)) {
	name, err := base64.RawURLEncoding.DecodeString(e.Key())
	if err != nil || e.Operation() != jetstream.KeyValuePut {
		return
	}
	ms, err := strconv.ParseInt(string(e.Value()), 10, 64)
	if err != nil {
		f.log.Warn("a revocation can't be read", "err", err)
		return
	}
	h(string(name), time.UnixMilli(ms), known)
}
