package store

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
	"liveroom/protocol"
)

// Journal reads the streams that keep what was admitted: gifts, what moderators did, sets of limits, and what was said.
//
// What was said is written behind, by a stream that listens beside the path, or copied by that of recent danmaku (see oneLog); who publishes a
// danmaku pays for nothing more. A copy knows its number in the original, so that a reader sees what the copy lacks.
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
	return j.toldAll(j.link.ReadSure(ctx, stream, ask))
}

// ofNoRoom stands for a room where something is of none. "==" begins no room's token.
const ofNoRoom = "==all"

// Note keeps an event of a room, "" for what is of none, beside the copies of danmaku. It does not wait; ErrForbidden or
// ErrDisconnected when nothing was sent.
func (j *Journal) Note(room string, event []byte) error {
	if err := j.link.May(link.RoadSaid); err != nil {
		return err
	}
	token := ofNoRoom
	if room != "" {
		token = protocol.Token(room)
	}
	return j.link.Publish(link.SaidPrefix+token, event)
}

// OfNoRoom reports whether a subject of what was said is that of no room.
func OfNoRoom(subject string) bool { return subject == link.SaidPrefix+ofNoRoom }
