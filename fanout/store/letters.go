package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
)

// Letters keeps what a platform did not take of what it is delivered, until somebody decides what becomes of it.
type Letters struct{ *core }

// LetterRecord is a dead letter.
type LetterRecord struct {
	Seq  uint64
	Data []byte
}

// letterBytes is some 100,000 of them; more are refused, and what they are of is not passed over.
const letterBytes = 64 << 20

// letters describes the stream: one message per webhook and event, so that one put aside again after a crash is there once.
func letters() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: link.LettersStream, Subjects: []string{link.LetterPrefix + "*.*"}, Storage: jetstream.FileStorage,
		MaxMsgsPerSubject: 1, MaxBytes: letterBytes, Discard: jetstream.DiscardNew, AllowDirect: true,
	}
}

// PutLetter keeps the letter of an event, both named by A-Z a-z 0-9 _ -, in the place of an earlier one. It is on disk when it returns;
// ErrRefused and ErrUnknown as with gifts.
func (l *Letters) PutLetter(ctx context.Context, webhook, id string, letter []byte) error {
	m := &nats.Msg{Subject: link.LetterPrefix + webhook + "." + id, Data: letter}
	if _, err := l.put(ctx, link.RoadLetter, m, jetstream.WithExpectStream(link.LettersStream)); err != nil {
		return fmt.Errorf("dead letter %s of %s: %w", id, webhook, err)
	}
	return nil
}

// LettersOf returns at most limit letters of a webhook with Seq above after, in order.
func (l *Letters) LettersOf(ctx context.Context, webhook string, after uint64, limit int) ([]LetterRecord, error) {
	got, err := l.link.ReadSure(ctx, link.LettersStream, link.Ask{Seq: after + 1, Next: link.LetterPrefix + webhook + ".*", Batch: limit})
	out := make([]LetterRecord, len(got))
	for i, r := range got {
		out[i] = LetterRecord{r.Seq, r.Data}
		if event, _ := quoted(r.Data, ""); event != nil {
			out[i].Data = bytes.Replace(r.Data, event, l.told(event), 1)
		}
	}
	return out, err
}

// quoted returns the event of a room, "" for any, that a letter quotes, and its kind; nil when it quotes none.
func quoted(letter []byte, room string) (event []byte, kind string) {
	var of struct {
		Entry struct {
			Kind, Room string
			Event      json.RawMessage
		}
	}
	if json.Unmarshal(letter, &of) != nil || room != "" && of.Entry.Room != room {
		return nil, ""
	}
	return of.Entry.Event, of.Entry.Kind
}

// LettersLeft is how many there are of all webhooks.
func (l *Letters) LettersLeft(ctx context.Context) (uint64, error) {
	info, err := l.link.StreamInfo(ctx, link.LettersStream)
	if err != nil {
		return 0, err
	}
	return info.State.Msgs, nil
}

// DropLetter takes one away; it may be gone already.
func (l *Letters) DropLetter(ctx context.Context, seq uint64) error {
	_, err := l.drop(ctx, link.LettersStream, seq)
	return err
}
