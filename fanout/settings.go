package fanout

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"liveroom/protocol"
)

// Settings returns the room's settings and their revision; nil and 0 when it has none.
func (f *Fabric) Settings(ctx context.Context, room string) ([]byte, uint64, error) {
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	e, err := f.buckets.settings.Get(ctx, protocol.Token(room))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("settings of room %s: %w", room, err)
	}
	return e.Value(), e.Revision(), nil
}

// PutSettings replaces the settings if their revision is still the given one (0: the room has none) and returns the
// new revision. All nodes that have the room hear of it. ErrConflict when somebody was faster, ErrUnknown when the
// store did not answer, ErrRefused when nothing was stored.
func (f *Fabric) PutSettings(ctx context.Context, room string, payload []byte, revision uint64) (uint64, error) {
	if !f.store.IsConnected() {
		return 0, fmt.Errorf("%w: %w", ErrRefused, ErrDisconnected)
	}
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	next, err := f.buckets.settings.Update(ctx, protocol.Token(room), payload, revision)
	switch {
	case err == nil:
		f.known.settings.meet(next)
		return next, nil
	case errors.Is(err, jetstream.ErrKeyRevisionMismatch), errors.Is(err, jetstream.ErrKeyExists):
		return 0, fmt.Errorf("%w: room %s is not at revision %d", ErrConflict, room, revision)
	default:
		return 0, fmt.Errorf("%w: settings of room %s: %w", storeFailure(err), room, err)
	}
}
