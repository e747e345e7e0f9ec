package store

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
	"liveroom/protocol"
)

const (
	showsBytes = 128 << 20 // the rooms that were not written for longest go first
	showsAge   = 30 * 24 * time.Hour
)

// Shows keep who has been in a room, one record for each.
type Shows struct{ *core }

func showSubject(room string) string { return link.ShowPrefix + protocol.Token(room) }

func shows() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: link.ShowStream, Subjects: []string{link.ShowPrefix + "*"}, Storage: jetstream.FileStorage,
		MaxMsgsPerSubject: 1, MaxBytes: showsBytes, MaxAge: showsAge, Duplicates: time.Second, AllowDirect: true,
	}
}

// Show returns the room's record and its revision; nil and 0 when it has none.
func (s *Shows) Show(ctx context.Context, room string) ([]byte, uint64, error) {
	r, _, err := s.link.Last(ctx, link.ShowStream, showSubject(room))
	if err != nil {
		return nil, 0, fmt.Errorf("show of room %s: %w", room, err)
	}
	return r.Data, r.Seq, nil
}

// PutShow replaces the record if its revision is still the given one (0: there is none) and returns the new one. ErrConflict when somebody
// was faster, ErrUnknown when the store did not answer, ErrRefused when nothing was stored.
func (s *Shows) PutShow(ctx context.Context, room string, record []byte, revision uint64) (uint64, error) {
	m := &nats.Msg{Subject: showSubject(room), Data: record}
	ack, err := s.put(ctx, link.RoadShow, m, jetstream.WithExpectLastSequencePerSubject(revision))
	if err != nil {
		return 0, fmt.Errorf("show of room %s at revision %d: %w", room, revision, err)
	}
	return ack.Sequence, nil
}
