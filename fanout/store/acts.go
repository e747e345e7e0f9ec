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

// actsPerRoom is more than rooms leave before they bring acts into their settings; the oldest go.
const actsPerRoom = 1000

func actSubject(room string) string { return link.ActPrefix + protocol.Token(room) }

// acts describes the stream of what moderators did since a room's settings were written. It stands behind that of the settings, so that a
// backup has no settings with an act that it does not have.
func (s *Store) acts() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: link.ActStream, Subjects: []string{link.ActPrefix + "*"}, Storage: jetstream.FileStorage,
		MaxMsgsPerSubject: actsPerRoom, MaxBytes: actBytes, MaxAge: settingsAge, Discard: jetstream.DiscardNew, Duplicates: time.Second,
		AllowRollup: true, AllowDirect: true, FirstSeq: s.here.acts.next(settingsGap),
		RePublish: &jetstream.RePublish{Source: link.ActPrefix + "*", Destination: link.AnyRoomSubject("{{wildcard(1)}}", link.KindAct)},
	}
}

// PutAct stores an act of a room if the last one that is stored still has that number (0: there is none), and returns its own, which
// grows. alone takes those before it away. All nodes that have the room hear of it. ErrConflict when somebody was faster, ErrUnknown when
// the store did not answer, ErrRefused when nothing was stored.
func (s *RoomSettings) PutAct(ctx context.Context, room string, value []byte, last uint64, alone bool) (uint64, error) {
	m := &nats.Msg{Subject: actSubject(room), Data: value, Header: nats.Header{}}
	if alone {
		m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	}
	ack, err := s.put(ctx, link.RoadAct, m, jetstream.WithExpectStream(link.ActStream), jetstream.WithExpectLastSequencePerSubject(last))
	if err != nil {
		return 0, fmt.Errorf("act in room %s after %d: %w", room, last, err)
	}
	s.here.acts.meet(ack.Sequence)
	s.marks.met(link.ActStream, ack.Sequence)
	return ack.Sequence, nil
}

// ActsAfter returns the room's acts with a number above after, in order. What is missing between them is part of its settings.
func (s *RoomSettings) ActsAfter(ctx context.Context, room string, after uint64) ([]protocol.StoredAct, error) {
	got, err := s.link.ReadSure(ctx, link.ActStream, link.Ask{Seq: after + 1, Next: actSubject(room), Batch: actsPerRoom})
	if err != nil {
		return nil, fmt.Errorf("acts in room %s after %d: %w", room, after, err)
	}
	acts := make([]protocol.StoredAct, len(got))
	for i, r := range got {
		acts[i] = protocol.StoredAct{Seq: r.Seq, Value: r.Data}
	}
	return acts, nil
}
