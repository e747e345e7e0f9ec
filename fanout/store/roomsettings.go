package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
	"liveroom/protocol"
)

// RoomSettings keeps rooms' settings.
type RoomSettings struct {
	*core
	follower *link.Follower
}

func settingsSubject(room string) string {
	return link.BucketPrefix(link.SettingsBucket) + protocol.Token(room)
}

// Settings returns the room's settings and their revision; nil and 0 when it has none.
func (s *RoomSettings) Settings(ctx context.Context, room string) ([]byte, uint64, error) {
	r, err := s.SettingsRecord(ctx, room)
	return r.Data, r.Seq, err
}

// SettingsRecord is [RoomSettings.Settings] with all that is stored of them.
func (s *RoomSettings) SettingsRecord(ctx context.Context, room string) (link.Record, error) {
	r, ok, err := s.link.Last(ctx, settingsStream, settingsSubject(room))
	if err != nil {
		return link.Record{}, fmt.Errorf("settings of room %s: %w", room, err)
	}
	if !ok || len(r.Data) == 0 { // a key that somebody removed
		return link.Record{}, nil
	}
	return r, nil
}

// PutSettings replaces the settings if their revision is still the given one (0: the room has none) and returns the
// new revision. All nodes that have the room hear of it. ErrConflict when somebody was faster, ErrUnknown when the
// store did not answer, ErrRefused when nothing was stored.
func (s *RoomSettings) PutSettings(ctx context.Context, room string, payload []byte, revision uint64) (uint64, error) {
	return s.write(ctx, room, link.Record{Data: payload}, revision)
}

func (s *RoomSettings) write(ctx context.Context, room string, r link.Record, revision uint64) (uint64, error) {
	m := &nats.Msg{Subject: settingsSubject(room), Data: r.Data, Header: r.Header()}
	ack, err := s.put(ctx, link.RoadSettings, m, jetstream.WithExpectLastSequencePerSubject(revision))
	if err != nil {
		return 0, fmt.Errorf("settings of room %s at revision %d: %w", room, revision, err)
	}
	s.here.settings.meet(ack.Sequence)
	s.marks.met(settingsStream, ack.Sequence)
	return ack.Sequence, nil
}

var settingsSubjects = link.BucketPrefix(link.SettingsBucket) + "*"

var errBehind = errors.New("fanout: rooms have not caught up yet")

// follow finds what the rooms of this node were not told: their subscriptions hear of changes at once, or did not.
func (s *RoomSettings) follow(ctx context.Context) error {
	behind := map[string]link.Seen{}
	reader := func(stream, subjects string, take func(v *link.Seen, seq uint64)) *link.Reader {
		return &link.Reader{Link: s.link, Stream: stream, Subject: subjects, Take: func(m link.Record) {
			room := link.RoomOf(link.LastToken(m.Subject))
			v := behind[room]
			take(&v, m.Seq)
			behind[room] = v
		}}
	}
	settings := reader(settingsStream, settingsSubjects, func(v *link.Seen, seq uint64) { v.Revision = seq })
	acts := reader(link.ActStream, link.ActPrefix+"*", func(v *link.Seen, seq uint64) { v.Act = seq })
	s.follower = s.link.Follow(link.FollowSettings, func(ctx context.Context) error {
		if err := errors.Join(settings.Read(ctx), acts.Read(ctx)); err != nil {
			return err
		}
		for room, v := range behind {
			if s.here.isOutdated(room) || !s.rooms.Behind(room, v) {
				delete(behind, room)
			}
		}
		if len(behind) > 0 {
			return errBehind
		}
		return nil
	})
	if err := errors.Join(settings.Begin(ctx), acts.Begin(ctx)); err != nil {
		return fmt.Errorf("follow settings: %w", err)
	}
	return nil
}

// renew writes settings of a room in use again before their age takes them away, which the store's clock tells.
func (s *RoomSettings) renew(ctx context.Context, r link.Record, now time.Time) {
	if now.Sub(r.Time) < settingsAge/2 {
		return
	}
	key := link.LastToken(r.Subject)
	ctx, cancel := s.link.Bounded(ctx)
	defer cancel()
	if _, err := s.buckets.settings.Update(ctx, key, r.Data, r.Seq); err != nil {
		s.log.Debug("settings not renewed; another node or a change was faster", "room", key, "err", err)
	}
}

// restore writes the settings that the rooms here go by: all when the stream was lost, else those of which the store has an older
// copy.
func (s *RoomSettings) restore(ctx context.Context, lost bool) error {
	var errs []error
	for room := range s.here.untold(lost) {
		if err := s.restoreRoom(ctx, room); err != nil {
			s.here.again(room)
			errs = append(errs, fmt.Errorf("restore settings of room %s: %w", room, err))
		}
	}
	return errors.Join(errs...)
}

func (s *RoomSettings) restoreRoom(ctx context.Context, room string) error {
	current := func() link.Record { return s.here.current(room) }
	return s.restoreNewest(ctx, settingsStream, settingsSubject(room), current, func(r link.Record, stored, _ uint64) error {
		_, err := s.write(ctx, room, r, stored)
		return err
	})
}
