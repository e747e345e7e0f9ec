package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"liveroom/fanout/link"
	"liveroom/fanout/store"
)

// Backup is where [Restore] reads streams from: Stream returns the next one, io.EOF behind the last, and Chunk its content, io.EOF
// behind the last piece.
type Backup interface {
	Stream() (name string, about json.RawMessage, err error)
	Chunk() ([]byte, error)
}

// Restore makes an embedded store in an empty cfg.DataDir out of what [store.Store.Snapshot] gave, and returns how many gifts its
// ledger holds. An error leaves a directory that is no store.
func Restore(ctx context.Context, cfg Config, b Backup, log *slog.Logger) (gifts uint64, err error) {
	if err := cfg.Validate(); err != nil {
		return 0, err
	}
	cfg = cfg.withDefaults()
	l, err := link.Open(ctx, cfg.link(), log)
	defer l.Shut()
	if err != nil {
		return 0, err
	}
	for {
		name, about, err := b.Stream()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = store.RestoreStream(ctx, l, name, about, b.Chunk)
		}
		if err != nil {
			return 0, fmt.Errorf("restore the stream %q: %w", name, err)
		}
	}
	s, err := store.Open(ctx, l, cfg.store()) // as any start does, so that what can't be opened is found here
	if err != nil {
		return 0, err
	}
	defer s.Close()
	return s.Restored(ctx)
}
