package store

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
)

// Readers keeps where those are who read on under a name: one record each.
type Readers struct{ *core }

// ReaderRecord is a record of [Readers].
type ReaderRecord struct {
	Name     string // 1 to 64 of A-Z a-z 0-9 _ -
	Value    []byte
	Revision uint64 // grows with each change of any; 0: there is none
}

// readerBytes is more than all of them, of 32 KiB each.
const readerBytes = 4 << 20

// readers describes the stream. No number is given out again, so that a record of before the stream was lost changes nothing.
func readers(first uint64) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: link.ConsumersStream, Subjects: []string{link.ConsumerPrefix + "*"}, Storage: jetstream.FileStorage,
		MaxMsgsPerSubject: 1, MaxBytes: readerBytes, MaxMsgSize: 32 << 10, Discard: jetstream.DiscardNew, AllowDirect: true, FirstSeq: first,
	}
}

// Reader returns the newest record of a name, by the stream's leader.
func (s *Readers) Reader(ctx context.Context, name string) (ReaderRecord, error) {
	r, ok, err := s.link.LeaderGet(ctx, link.ConsumersStream, link.Ask{Last: link.ConsumerPrefix + name})
	if err != nil || !ok {
		return ReaderRecord{Name: name}, err
	}
	return ReaderRecord{name, r.Data, r.Seq}, nil
}

// PutReader stores a record in the place of one of the revision that it has, and returns the new one. ErrConflict when somebody was
// faster, ErrRefused and ErrUnknown as with gifts.
func (s *Readers) PutReader(ctx context.Context, r ReaderRecord) (uint64, error) {
	m := &nats.Msg{Subject: link.ConsumerPrefix + r.Name, Data: r.Value}
	ack, err := s.put(ctx, link.RoadConsumer, m, jetstream.WithExpectStream(link.ConsumersStream), jetstream.WithExpectLastSequencePerSubject(r.Revision))
	if err != nil {
		return 0, fmt.Errorf("place of %s: %w", r.Name, err)
	}
	return ack.Sequence, nil
}

// DropReader takes a record of that revision away. ErrConflict when it is not there any more.
func (s *Readers) DropReader(ctx context.Context, r ReaderRecord) error {
	was, err := s.drop(ctx, link.ConsumersStream, r.Revision)
	if err == nil && !was {
		err = fmt.Errorf("%w: place of %s", ErrConflict, r.Name)
	}
	return err
}

// AllReaders returns the newest records, in no order.
func (s *Readers) AllReaders(ctx context.Context) (out []ReaderRecord, err error) {
	for after := uint64(0); ; {
		got, err := s.link.ReadSure(ctx, link.ConsumersStream, link.Ask{Seq: after + 1, Next: link.ConsumerPrefix + "*", Batch: readBatch})
		if err != nil || len(got) == 0 {
			return out, err
		}
		for _, r := range got {
			after = r.Seq
			out = append(out, ReaderRecord{link.LastToken(r.Subject), r.Data, r.Seq})
		}
	}
}
