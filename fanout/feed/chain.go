package feed

import (
	"context"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
	"liveroom/protocol"
)

// fillBatch is how many gifts one read brings.
const fillBatch = 256

// heldGift was re-published and may not be on disk yet.
type heldGift struct {
	link.Record
	prev uint64
}

// receiveGift takes a re-published gift. One of an atomic batch comes before the batch is on disk, and a loss of power could take it: it
// is held until the batch is known to be synced, which [Feeds.SayGift] tells, or the next write to the stream. All on the feed's
// goroutine, so nothing of the room overtakes it.
func (s *Subscription) receiveGift(payload []byte, header nats.Header) {
	r, err := link.StoredRecord(payload, header)
	if err != nil {
		return // no gift of the ledger
	}
	prev, err := strconv.ParseUint(header.Get(jetstream.LastSequenceHeader), 10, 64)
	if err != nil {
		return
	}
	g, batch := heldGift{r, prev}, header.Get(link.BatchHeader)
	if batch != s.batch {
		s.release(r.Seq)
		s.batch = batch
	}
	if batch == "" {
		s.follow(g)
	} else {
		s.held = append(s.held, g)
	}
}

// release delivers what was held, up to a gift that is on disk.
func (s *Subscription) release(seq uint64) {
	n := 0
	for n < len(s.held) && s.held[n].Seq <= seq {
		s.follow(s.held[n])
		n++
	}
	s.held = slices.Delete(s.held, 0, n)
}

// follow delivers a gift if it follows the last one, reads what lies between if there is a hole, and ignores what the handler has had.
func (s *Subscription) follow(g heldGift) {
	if !s.known.Load() { // the store was away at the start: begin here
		s.lastGift.Store(g.prev)
		s.known.Store(true)
	}
	if g.prev > s.lastGift.Load() {
		s.fill(g.prev)
	}
	// Still behind when the reading failed: the gift stays in the ledger for the next attempt.
	if last := s.lastGift.Load(); g.Seq > last && g.prev <= last {
		s.deliver(protocol.StoredGift{Seq: g.Seq, Prev: last, Event: g.Data, Time: g.Time})
	}
}

// fill delivers from the ledger until the handler has everything up to seq.
func (s *Subscription) fill(seq uint64) {
	for s.lastGift.Load() < seq && !s.closed.Load() {
		last := s.lastGift.Load()
		gifts, err := s.feeds.store.GiftsAfter(context.Background(), s.room, last, fillBatch) // bounded by the store
		if err != nil || len(gifts) == 0 {
			// An empty answer comes from a replica that lags behind the one that re-published.
			s.feeds.metrics.unfilled.Inc()
			s.feeds.log.Warn("gifts are missing and cannot be read yet", "room", s.room, "after", last, "err", err)
			s.feeds.Soon.Soon()
			return
		}
		for _, g := range gifts {
			s.deliver(g)
		}
	}
	s.feeds.metrics.filled.Inc()
}

func (s *Subscription) deliver(g protocol.StoredGift) {
	if s.closed.Load() {
		return
	}
	s.lastGift.Store(g.Seq)
	s.feeds.store.MetGift(g.Seq)
	s.feeds.metrics.class[protocol.ClassGift].Inc()
	s.h.Gift(g)
}
