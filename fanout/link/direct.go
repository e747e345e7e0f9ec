package link

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

// Ask asks a stream for messages without a consumer (NATS ADR-31). Last is for its leader alone, Batch and what follows for any
// replica.
type Ask struct {
	Seq       uint64   `json:"seq,omitempty"`
	Next      string   `json:"next_by_subj,omitempty"`
	Last      string   `json:"last_by_subj,omitempty"`
	Batch     int      `json:"batch,omitempty"`
	MultiLast []string `json:"multi_last,omitempty"`
	UpToSeq   uint64   `json:"up_to_seq,omitempty"`

	Start *time.Time `json:"start_time,omitempty"` // instead of Seq
}

// Record is a stored message.
type Record struct {
	Subject string
	Seq     uint64
	Time    time.Time
	Data    []byte
	Origin  uint64 // the sequence that it had before its stream was lost; 0: it is no restored one
	Node    string // of a set of limits: where somebody decided it; "" when a node that did not say so wrote it
	Paid    protocol.Payment
	Nth     uint64 // of its subject's, where these are counted; else 0

	// Of a copy that another stream re-published: its sequence there, and that of the one before on its subject. Else 0.
	Number, Before uint64
}

// BatchHeader names the atomic batch that a stored message came in: while it is re-published, the batch may not be on disk yet.
const BatchHeader = "Nats-Batch-Id"

// beforeHeader is added to what a stream re-publishes.
const beforeHeader = "Nats-Last-Sequence"

// copied reads what the re-publishing stream said of a stored message. Who reads the stream adds its own sequence behind.
func (r *Record) copied(h nats.Header) {
	r.Number, _ = strconv.ParseUint(h.Get(jetstream.SequenceHeader), 10, 64) // absent: 0
	r.Before, _ = strconv.ParseUint(h.Get(beforeHeader), 10, 64)
}

// newest is the last value of a header that several have added to.
func newest(h nats.Header, key string) string {
	if all := h.Values(key); len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// The headers that carry [Record.Origin] and [Record.Node].
const (
	originHeader = "Lr-Origin"
	nodeHeader   = "Lr-Node"
)

// NthHeader carries [Record.Nth].
const NthHeader = "Lr-Nth"

func originOf(h nats.Header) uint64 {
	n, _ := strconv.ParseUint(h.Get(originHeader), 10, 64) // absent: 0
	return n
}

// The headers of a gift that was paid for.
const (
	attemptHeader = "Lr-Attempt"
	chargedHeader = "Lr-Charged"
	refHeader     = "Lr-Ref"
)

// PaymentHeader says how a gift was paid for.
func PaymentHeader(p protocol.Payment) nats.Header {
	h := nats.Header{}
	h.Set(attemptHeader, strconv.FormatUint(p.Attempt, 10))
	if p.Charged != 0 {
		h.Set(chargedHeader, strconv.FormatInt(p.Charged, 10))
	}
	if p.Ref != "" {
		h.Set(refHeader, p.Ref)
	}
	return h
}

func paymentOf(h nats.Header) (p protocol.Payment) {
	if attempt := h.Get(attemptHeader); attempt != "" {
		p.Attempt, _ = strconv.ParseUint(attempt, 10, 64)
		p.Charged, _ = strconv.ParseInt(h.Get(chargedHeader), 10, 64)
		p.Ref = h.Get(refHeader)
	}
	return p
}

// Header says where a record comes from.
func (r Record) Header() nats.Header {
	h := nats.Header{}
	if r.Origin != 0 {
		h.Set(originHeader, strconv.FormatUint(r.Origin, 10))
	}
	if r.Node != "" {
		h.Set(nodeHeader, r.Node)
	}
	return h
}

// Decided is the sequence under which somebody decided it.
func (r Record) Decided() uint64 {
	if r.Origin > 0 {
		return r.Origin
	}
	return r.Seq
}

// Outdates reports whether other was restored from an older copy than r is: of several nodes that lived through the loss
// of a stream the slowest to have heard may have been the first to write.
func (r Record) Outdates(other Record) bool { return other.Origin > 0 && other.Origin < r.Decided() }

// Read returns what the stream has for the request, in the order of its sequence.
func (l *Link) Read(ctx context.Context, stream string, req Ask) (out []Record, err error) {
	ctx, op := l.Traced(ctx, "read", stream)
	defer func() { op.End(err) }()
	ctx, cancel := l.Bounded(ctx)
	defer cancel()
	body, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", stream, err)
	}
	inbox := l.Store.NewInbox()
	// Room for all of the answer, its end and an error; SubscribeSync would take half a megabyte.
	answer := make(chan *nats.Msg, max(req.Batch, len(req.MultiLast), 1)+2)
	sub, err := l.Store.ChanSubscribe(inbox, answer)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", stream, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection, where there is nothing to undo
	if err := l.Store.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, body); err != nil {
		return nil, fmt.Errorf("read %s: %w", stream, err)
	}
	for {
		var m *nats.Msg
		select {
		case m = <-answer:
		case <-ctx.Done():
			return nil, fmt.Errorf("read %s: %w", stream, ctx.Err())
		}
		switch m.Header.Get("Status") {
		case "":
			r, err := StoredRecord(m.Data, m.Header)
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

// Last returns the newest message on the subject.
func (l *Link) Last(ctx context.Context, stream, subject string) (_ Record, ok bool, err error) {
	ctx, op := l.Traced(ctx, "last", stream)
	defer func() { op.End(err) }()
	ctx, cancel := l.Bounded(ctx)
	defer cancel()
	m, err := l.Store.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+stream+"."+subject, nil)
	if err != nil {
		return Record{}, false, fmt.Errorf("read %s: %w", stream, err)
	}
	switch m.Header.Get("Status") {
	case "":
		r, err := StoredRecord(m.Data, m.Header)
		if err != nil {
			return Record{}, false, fmt.Errorf("read %s: %w", stream, err)
		}
		return r, true, nil
	case "404":
		return Record{}, false, nil
	default:
		return Record{}, false, fmt.Errorf("read %s: %s %s", stream, m.Header.Get("Status"), m.Header.Get("Description"))
	}
}

var errNoSequence = errors.New("message without Nats-Sequence")

// StoredRecord reads the headers that JetStream adds to what it returns and to what it re-publishes.
func StoredRecord(data []byte, h nats.Header) (Record, error) {
	seq, err := strconv.ParseUint(newest(h, jetstream.SequenceHeader), 10, 64)
	if err != nil {
		return Record{}, errNoSequence
	}
	// A message without a readable time is still the message.
	t, _ := time.Parse(time.RFC3339Nano, newest(h, jetstream.TimeStampHeaer))
	r := Record{Subject: newest(h, jetstream.SubjectHeader), Seq: seq, Time: t, Data: data, Origin: originOf(h), Node: h.Get(nodeHeader), Paid: paymentOf(h)}
	r.Nth, _ = strconv.ParseUint(h.Get(NthHeader), 10, 64) // absent: 0
	if len(h.Values(jetstream.SequenceHeader)) > 1 {
		r.copied(h)
	}
	return r, nil
}

// ReadSure is [Link.Read] that says nothing only when there is nothing. A replica may lag behind the leader, whose word counts for
// that.
func (l *Link) ReadSure(ctx context.Context, stream string, req Ask) ([]Record, error) {
	got, err := l.Read(ctx, stream, req)
	if err != nil || len(got) > 0 {
		return got, err
	}
	req.Batch = 0
	next, ok, err := l.LeaderGet(ctx, stream, req)
	if err != nil || !ok {
		return nil, err
	}
	return []Record{next}, nil
}

// StreamInfo is the leader's word. Its TimeStamp is the leader's clock, by which ages of what it stored are told: this node's may be
// another one.
func (l *Link) StreamInfo(ctx context.Context, stream string) (_ *jetstream.StreamInfo, err error) {
	ctx, op := l.Traced(ctx, "info", stream)
	defer func() { op.End(err) }()
	ctx, cancel := l.Bounded(ctx)
	defer cancel()
	s, err := l.JS.Stream(ctx, stream)
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", stream, err)
	}
	return s.CachedInfo(), nil
}

// LeaderGet returns the message, false when there is none. What other replicas answer may be older than what somebody was
// shown.
func (l *Link) LeaderGet(ctx context.Context, stream string, req Ask) (_ Record, ok bool, err error) {
	ctx, op := l.Traced(ctx, "get", stream)
	defer func() { op.End(err) }()
	ctx, cancel := l.Bounded(ctx)
	defer cancel()
	body, err := json.Marshal(req)
	if err != nil {
		return Record{}, false, err
	}
	answer, err := l.Store.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, body)
	if err != nil {
		return Record{}, false, fmt.Errorf("read %s: %w", stream, err)
	}
	var got struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(answer.Data, &got); err != nil {
		return Record{}, false, fmt.Errorf("read %s: %w", stream, err)
	}
	switch m := got.Message; {
	case got.Error == nil:
		r := Record{Subject: m.Subject, Seq: m.Seq, Time: m.Time, Data: m.Data}
		if len(m.Header) > 0 {
			header, err := nats.DecodeHeadersMsg(m.Header)
			if err != nil {
				return Record{}, false, fmt.Errorf("read %s: %w", stream, err)
			}
			r.Origin, r.Node, r.Paid = originOf(header), header.Get(nodeHeader), paymentOf(header)
			r.copied(header)
		}
		return r, true, nil
	case got.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return Record{}, false, nil
	default:
		return Record{}, false, fmt.Errorf("read %s: %w", stream, got.Error)
	}
}
