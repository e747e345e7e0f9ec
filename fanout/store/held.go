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

// Held keeps messages that wait for staff, and for a while what became of them.
type Held struct{ *core }

// HeldRecord is what is stored last of one held message.
type HeldRecord struct {
	Room  string
	Seq   uint64
	Value []byte // what [Held.PutHeld] was given
}

const (
	// heldAge takes away what no node has decided; it is more than any room's time limit.
	heldAge = 48 * time.Hour
	// heldDone is how long it is known who has decided.
	heldDone = 10 * time.Minute
)

// withheld describes the stream: one message per held one, replaced as it is decided.
func withheld() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: link.HeldStream, Subjects: []string{link.HeldPrefix + "*.*"}, Storage: jetstream.FileStorage,
		MaxMsgsPerSubject: 1, MaxBytes: heldBytes, MaxAge: heldAge, Discard: jetstream.DiscardNew, Duplicates: time.Second,
		AllowMsgTTL: true, AllowDirect: true,
		RePublish: &jetstream.RePublish{Source: link.HeldPrefix + "*.*", Destination: link.AnyRoomSubject("{{wildcard(1)}}", link.KindHeld)},
	}
}

func heldSubject(room, mid string) string {
	return link.HeldPrefix + protocol.Token(room) + "." + protocol.Token(mid)
}

func (h *Held) record(r link.Record) HeldRecord {
	subject := r.Subject[len(link.HeldPrefix):]
	return HeldRecord{Room: link.RoomOf(subject[:len(subject)-len(link.LastToken(subject))-1]), Seq: r.Seq, Value: h.told(r.Data)}
}

// PutHeld stores value if what is stored of the message still is number last (0: nothing), and returns its number. done says that it is
// the last word, which goes after a while. All nodes hear of it, see [Held.FollowHeld]. ErrConflict when somebody was faster, ErrUnknown
// when the store did not answer, ErrRefused when nothing was stored.
func (h *Held) PutHeld(ctx context.Context, room, mid string, value []byte, last uint64, done bool) (uint64, error) {
	opts := []jetstream.PublishOpt{jetstream.WithExpectStream(link.HeldStream), jetstream.WithExpectLastSequencePerSubject(last)}
	if done {
		opts = append(opts, jetstream.WithMsgTTL(heldDone))
	}
	ack, err := h.put(ctx, link.RoadHeld, &nats.Msg{Subject: heldSubject(room, mid), Data: value}, opts...)
	if err != nil {
		return 0, fmt.Errorf("held message %s of room %s after %d: %w", mid, room, last, err)
	}
	return ack.Sequence, nil
}

// ReadHeld returns what is stored last of a message, and its number; nil and 0 for none.
func (h *Held) ReadHeld(ctx context.Context, room, mid string) ([]byte, uint64, error) {
	r, _, err := h.link.LeaderGet(ctx, link.HeldStream, link.Ask{Last: heldSubject(room, mid)})
	if err != nil {
		return nil, 0, fmt.Errorf("held message %s of room %s: %w", mid, room, err)
	}
	return h.told(r.Data), r.Seq, nil
}

// HeldOf returns at most limit (1 to 1000) of the room's held messages with a number above after, in order, decided ones among them.
func (h *Held) HeldOf(ctx context.Context, room string, after uint64, limit int) ([]HeldRecord, error) {
	got, err := h.link.ReadSure(ctx, link.HeldStream, link.Ask{Seq: after + 1, Next: heldSubject(room, "") + "*", Batch: limit})
	if err != nil {
		return nil, fmt.Errorf("held messages of room %s: %w", room, err)
	}
	out := make([]HeldRecord, len(got))
	for i, r := range got {
		out[i] = h.record(r)
	}
	return out, nil
}

// FollowHeld calls take with everything that is held in any room, and then with what changes, until stop is called. known tells that it
// was there before. The calls come one after the other. It returns when take has seen all that was stored.
func (h *Held) FollowHeld(ctx context.Context, take func(r HeldRecord, known bool)) (stop func(), err error) {
	known := true
	r := &link.Reader{Link: h.link, Stream: link.HeldStream, Subject: link.HeldPrefix + "*.*", Take: func(m link.Record) { take(h.record(m), known) }}
	w := h.link.Follow(link.FollowHeld, r.Read)
	if err := w.Hear(link.AnyRoomSubject("*", link.KindHeld)); err != nil {
		return nil, err
	}
	if err := w.LookOnce(ctx); err != nil {
		w.Forget()
		return nil, fmt.Errorf("read what is held: %w", err)
	}
	known = false
	return w.Start(), nil
}
