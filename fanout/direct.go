package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/protocol"
)

// directGet asks a stream for messages without a consumer (NATS ADR-31).
type directGet struct {
	Seq       uint64   `json:"seq,omitempty"`
	Next      string   `json:"next_by_subj,omitempty"`
	Batch     int      `json:"batch,omitempty"`
	MultiLast []string `json:"multi_last,omitempty"`
	UpToSeq   uint64   `json:"up_to_seq,omitempty"`
}

// record is a stored message.
type record struct {
	Subject string
	Seq     uint64
	Time    time.Time
	Data    []byte
	Origin  uint64 // the sequence that it had before its stream was lost; 0: it is no restored one
	Node    string // of a set of limits: where somebody decided it; "" when a node that did not say so wrote it
	Paid    protocol.Payment
}

// The headers that carry [record.Origin] and [record.Node].
const (
	originHeader = "Lr-Origin"
	nodeHeader   = "Lr-Node"
)

func originOf(h nats.Header) uint64 {
	n, _ := strconv.ParseUint(h.Get(originHeader), 10, 64) // absent: 0
	return n
}

// header says where a record comes from.
func (r record) header() nats.Header {
	h := nats.Header{}
	if r.Origin != 0 {
		h.Set(originHeader, strconv.FormatUint(r.Origin, 10))
	}
	if r.Node != "" {
		h.Set(nodeHeader, r.Node)
	}
	return h
}

// decided is the sequence under which somebody decided it.
func (r record) decided() uint64 {
	if r.Origin > 0 {
		return r.Origin
	}
	return r.Seq
}

// outdates reports whether other was restored from an older copy than r is: of several nodes that lived through the loss
// of a stream the slowest to have heard may have been the first to write.
func (r record) outdates(other record) bool { return other.Origin > 0 && other.Origin < r.decided() }

// read returns what the stream has for the request, in the order of its sequence.
func (f *Fabric) read(ctx context.Context, stream string, req directGet) ([]record, error) {
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	body, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", stream, err)
	}
	inbox := f.store.NewInbox()
	// Room for all of the answer, its end and an error; SubscribeSync would take half a megabyte.
	answer := make(chan *nats.Msg, max(req.Batch, len(req.MultiLast), 1)+2)
	sub, err := f.store.ChanSubscribe(inbox, answer)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", stream, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection, where there is nothing to undo
	if err := f.store.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, body); err != nil {
		return nil, fmt.Errorf("read %s: %w", stream, err)
	}
	var out []record
	for {
		var m *nats.Msg
		select {
		case m = <-answer:
		case <-ctx.Done():
			return nil, fmt.Errorf("read %s: %w", stream, ctx.Err())
		}
		switch m.Header.Get("Status") {
		case "":
			r, err := storedRecord(m)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", stream, err)
			}
			out = append(out, r)
		case "204", "404": // end of batch; nothing found
			return out, nil
		case "503":
			return nil, fmt.Errorf("read %s: %w", stream, nats.ErrNoResponders)
		default:
			return nil, fmt.Errorf("read %s: %s %s", stream, m.Header.Get("Status"), m.Header.Get("Description"))
		}
	}
}

// last returns the newest message on the subject.
func (f *Fabric) last(ctx context.Context, stream, subject string) (record, bool, error) {
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	m, err := f.store.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+stream+"."+subject, nil)
	if err != nil {
		return record{}, false, fmt.Errorf("read %s: %w", stream, err)
	}
	switch m.Header.Get("Status") {
	case "":
		r, err := storedRecord(m)
		if err != nil {
			return record{}, false, fmt.Errorf("read %s: %w", stream, err)
		}
		return r, true, nil
	case "404":
		return record{}, false, nil
	default:
		return record{}, false, fmt.Errorf("read %s: %s %s", stream, m.Header.Get("Status"), m.Header.Get("Description"))
	}
}

var errNoSequence = errors.New("message without Nats-Sequence")

// storedRecord reads the headers that JetStream adds to what it returns and to what it re-publishes.
func storedRecord(m *nats.Msg) (record, error) {
	seq, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil {
		return record{}, errNoSequence
	}
	// A message without a readable time is still the message.
	t, _ := time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
	return record{Subject: m.Header.Get(jetstream.SubjectHeader), Seq: seq, Time: t, Data: m.Data, Origin: originOf(m.Header), Node: m.Header.Get(nodeHeader), Paid: paymentOf(m.Header)}, nil
}

// storeContext bounds a wait for JetStream.
func (f *Fabric) storeContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, f.cfg.StoreTimeout)
}
