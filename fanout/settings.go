package fanout

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Settings returns the room's settings and their revision; nil and 0 when it has none.
func (f *Fabric) Settings(ctx context.Context, room string) ([]byte, uint64, error) {
	r, err := f.storedSettings(ctx, room)
	return r.Data, r.Seq, err
}

func (f *Fabric) storedSettings(ctx context.Context, room string) (record, error) {
	r, ok, err := f.last(ctx, settingsStream, settingsSubject(room))
	if err != nil {
		return record{}, fmt.Errorf("settings of room %s: %w", room, err)
	}
	if !ok || len(r.Data) == 0 { // a key that somebody removed
		return record{}, nil
	}
	return r, nil
}

// PutSettings replaces the settings if their revision is still the given one (0: the room has none) and returns the
// new revision. All nodes that have the room hear of it. ErrConflict when somebody was faster, ErrUnknown when the
// store did not answer, ErrRefused when nothing was stored.
func (f *Fabric) PutSettings(ctx context.Context, room string, payload []byte, revision uint64) (uint64, error) {
	return f.putSettings(ctx, room, record{Data: payload}, revision)
}

func (f *Fabric) putSettings(ctx context.Context, room string, r record, revision uint64) (uint64, error) {
	if err := f.mayStore(roadSettings); err != nil {
		return 0, err
	}
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	m := &nats.Msg{Subject: settingsSubject(room), Data: r.Data, Header: r.header()}
	ack, err := f.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(revision), jetstream.WithRetryAttempts(0))
	f.wrote(err)
	switch {
	case err == nil:
		f.known.settings.meet(ack.Sequence)
		f.marks.met(settingsStream, ack.Sequence)
		return ack.Sequence, nil
	case apiCode(err) == jetstream.JSErrCodeStreamWrongLastSequence:
		return 0, fmt.Errorf("%w: room %s is not at revision %d", ErrConflict, room, revision)
	default:
		return 0, fmt.Errorf("%w: settings of room %s: %w", storeFailure(err), room, err)
	}
}

// followSettings finds what the rooms of this node were not told: their subscriptions hear of changes at once, or did not.
func (f *Fabric) followSettings(ctx context.Context) (*follower, error) {
	behind := map[*Subscription]uint64{}
	r := &reader{f: f, stream: settingsStream, subject: "$KV." + settingsBucket + ".*", take: func(m record) {
		room := roomOf(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
		f.mu.Lock()
		s := f.subs[room]
		f.mu.Unlock()
		if s != nil {
			behind[s] = m.Seq
		}
	}}
	w := f.lookOften(FollowSettings, func(ctx context.Context) error {
		if err := r.read(ctx); err != nil {
			return err
		}
		for s, revision := range behind {
			if s.closed.Load() || s.revision.Load() >= revision || s.outdated.Load() {
				delete(behind, s)
				continue
			}
			f.say(s.room, seen{revision: revision})
		}
		if len(behind) > 0 {
			return errBehind
		}
		return nil
	})
	return w, r.begin(ctx)
}

// roomOf undoes [protocol.Token].
func roomOf(token string) string {
	room, err := url.PathUnescape(strings.ReplaceAll(token, "=", "%"))
	if err != nil {
		return token // no token of ours
	}
	return room
}
