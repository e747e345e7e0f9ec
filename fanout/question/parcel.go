package question

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"liveroom/fanout/link"
	"liveroom/internal/lock"
)

// verbParcel is where pieces of parcels are asked for.
const verbParcel = "parcel"

const (
	parcelMost = 64 << 20  // bytes of one payload
	parcelsAll = 256 << 20 // bytes that this node keeps for others to fetch
	pieceMost  = 256 << 10 // bytes of one message
	// pullsMost is how many parcels are fetched at once: what is under way to this node stays far below what NATS holds
	// for a reader.
	pullsMost = 4
)

// parcels are payloads too large for one message. They are not sent but offered: who wants one fetches it piece by piece
// at its own pace, so that the answers of many nodes at once do not make a slow consumer of the one that asked.
type parcels struct {
	pulls chan struct{} // pullsMost places

	mu    lock.Mutex[lock.Leaf]
	count uint64
	bytes int
	byID  map[uint64]parcel
}

type parcel struct {
	body  []byte
	until time.Time // forgotten then
}

func newParcels() *parcels {
	return &parcels{pulls: make(chan struct{}, pullsMost), byID: map[uint64]parcel{}}
}

// offer keeps the payload for a while.
func (p *parcels) offer(body []byte, until time.Time) (id uint64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes+len(body) > parcelsAll {
		return 0, fmt.Errorf("%w: %d bytes wait to be fetched", ErrBusy, p.bytes)
	}
	p.count++
	p.bytes += len(body)
	p.byID[p.count] = parcel{body, until}
	return p.count, nil
}

// piece returns what follows the offset, at most n bytes.
func (p *parcels) piece(id uint64, offset, n int) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o, ok := p.byID[id]
	if !ok || offset < 0 || offset >= len(o.body) {
		return nil, false
	}
	return o.body[offset:min(offset+n, len(o.body))], true
}

func (p *parcels) forget(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgetLocked(id)
}

func (p *parcels) forgetLocked(id uint64) {
	p.bytes -= len(p.byID[id].body)
	delete(p.byID, id)
}

func (p *parcels) expire(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, o := range p.byID {
		if now.After(o.until) {
			p.forgetLocked(id)
		}
	}
}

// letter makes a message of the payload, or of the place to fetch it from within keep. taken ends the offer.
func (q *Questions) letter(subject string, payload []byte, keep time.Duration) (m *nats.Msg, taken func(), err error) {
	m = &nats.Msg{Subject: subject, Header: nats.Header{fromHeader: {fmt.Sprint(q.incarnation, " ", q.node)}}}
	if len(payload) <= q.pieceSize() {
		m.Data = payload
		return m, func() {}, nil
	}
	if len(payload) > parcelMost {
		return nil, nil, fmt.Errorf("%d bytes are more than %d", len(payload), parcelMost)
	}
	id, err := q.parcels.offer(payload, time.Now().Add(keep))
	if err != nil {
		return nil, nil, err
	}
	m.Header.Set(parcelHeader, fmt.Sprint(id, " ", len(payload)))
	return m, func() { q.parcels.forget(id) }, nil
}

// pieceSize leaves room for the headers in what the server takes as one message.
func (q *Questions) pieceSize() int {
	return max(min(int(q.link.Store.MaxPayload())-1024, pieceMost), 256)
}

// sender reads who wrote a letter.
func sender(m *nats.Msg) (node string, incarnation uint64) {
	_, _ = fmt.Sscan(m.Header.Get(fromHeader), &incarnation, &node) // of something else: nobody
	return node, incarnation
}

// body returns the payload of a letter, fetched if it is a parcel of that node.
func (q *Questions) body(ctx context.Context, node string, m *nats.Msg) ([]byte, error) {
	offer := m.Header.Get(parcelHeader)
	if offer == "" {
		return m.Data, nil
	}
	var id uint64
	var size int
	if _, err := fmt.Sscan(offer, &id, &size); err != nil || size < 0 || size > parcelMost {
		return nil, fmt.Errorf("parcel %q: not understood", offer)
	}
	select {
	case q.parcels.pulls <- struct{}{}:
		defer func() { <-q.parcels.pulls }()
	case <-ctx.Done():
		return nil, askFailure(ctx.Err())
	}
	_, incarnation := sender(m)
	body := make([]byte, 0, size)
	for len(body) < size {
		ask := nats.NewMsg(link.NodeSubject(node, verbParcel))
		ask.Data = fmt.Append(nil, incarnation, " ", id, " ", len(body))
		piece, err := q.link.Store.RequestMsgWithContext(ctx, ask)
		if err != nil {
			return nil, fmt.Errorf("parcel of %d bytes: %w", size, askFailure(err))
		}
		if len(piece.Data) == 0 || len(body)+len(piece.Data) > size {
			return nil, fmt.Errorf("parcel of %d bytes: the sender has it no more", size)
		}
		body = append(body, piece.Data...)
	}
	return body, nil
}

// handOut answers a request for a piece of a parcel; the last piece ends the offer, unless others may want it too.
func (q *Questions) handOut(m *nats.Msg) {
	var incarnation, id uint64
	var offset int
	var piece []byte
	if _, err := fmt.Sscan(string(m.Data), &incarnation, &id, &offset); err == nil && incarnation == q.incarnation {
		piece, _ = q.parcels.piece(id, offset, q.pieceSize())
	}
	if err := m.Respond(piece); err != nil {
		q.link.Log.Debug("piece of a parcel not sent", "offset", offset, "err", err)
	}
}
