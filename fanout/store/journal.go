package store

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
)

// Journal reads the streams that keep what was admitted: gifts, what moderators did, sets of limits, and what was said.
//
// What was said is copied by the stream of recent danmaku, which listens beside the path; who publishes a danmaku pays for nothing more. The
// copy is written behind. A record of it knows its number in the original, so that a reader sees what the copy lacks.
type Journal struct{ *core }

// State is how far a stream reaches by its leader's word, and the name that tells it from any before it.
func (j *Journal) State(ctx context.Context, stream string) (name string, info *jetstream.StreamInfo, err error) {
	if info, err = j.link.StreamInfo(ctx, stream); err != nil {
		return "", nil, err
	}
	return ledgerName(info), info, nil
}

// Records returns what there is for the request, and nothing only if there is nothing.
func (j *Journal) Records(ctx context.Context, stream string, ask link.Ask) ([]link.Record, error) {
	return j.link.ReadSure(ctx, stream, ask)
}
