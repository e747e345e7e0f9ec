package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
)

const (
	// ledgerKey names the ledger in its stream's metadata, once it has lost gifts; until then the instant of its making does.
	ledgerKey = "liveroom.ledger"
	// voidKey lists the names that it had before, the last voidKept of them.
	voidKey  = "liveroom.ledger.void"
	voidKept = 16
)

// readBatch is how many messages one read brings.
const readBatch = 256

// ledgerName is at most 22 of 0-9 A-Z a-z.
func ledgerName(info *jetstream.StreamInfo) string {
	if name := info.Config.Metadata[ledgerKey]; name != "" {
		return name
	}
	return streamName(info)
}

// LedgerID tells this ledger from any other, whose sequences say nothing here; the same on every node.
func (g *Ledger) LedgerID() string {
	if id := g.id.Load(); id != nil {
		return *id
	}
	return ""
}

// know keeps the ledger's name; another node may have given it a new one.
func (g *Ledger) know(info *jetstream.StreamInfo) {
	name, holes := ledgerName(info), ledgerHoles(info.State)
	if was := g.LedgerID(); name != was {
		g.id.Store(&name)
		if was == "" {
			return // check compares it with the marks first
		}
	}
	if m := g.marks.read(); g.checked && (m.Ledger != name || holes < m.Holes) {
		g.marks.ledger(name, holes)
	}
}

// ErrLedger says that what is stored is not what was acknowledged: it is another store, or a shorter one.
var ErrLedger = errors.New("fanout: the store has lost what it had acknowledged")

// Whole returns what was found lost since this node started, nil for nothing.
func (g *Ledger) Whole() error {
	if e := g.lost.Load(); e != nil {
		return *e
	}
	return nil
}

func (g *Ledger) lose(err error) { g.lost.CompareAndSwap(nil, &err) }

// streamName tells a stream from another one of its name.
func streamName(info *jetstream.StreamInfo) string {
	return strconv.FormatInt(info.Created.UnixNano(), 36)
}

// check looks at the gifts.
func (g *Ledger) check(ctx context.Context, was marked, known bool) error {
	info, err := g.link.StreamInfo(ctx, link.GiftStream)
	if err != nil {
		return err
	}
	state, last, holes, id := info.State, was.Last[link.GiftStream], ledgerHoles(info.State), ledgerName(info)
	var fault error
	switch {
	case !known:
	case was.Ledger != "" && id != was.Ledger && !slices.Contains(strings.Split(info.Config.Metadata[voidKey], ","), was.Ledger):
		fault = fmt.Errorf("%w: the gift ledger is another one (%s, and it was %s); it begins at %d, and %d was acknowledged", ErrLedger, id, was.Ledger, state.FirstSeq, last)
	case state.LastSeq < last:
		fault = fmt.Errorf("%w: the gift ledger ends at %d, and %d was acknowledged", ErrLedger, state.LastSeq, last)
	case g.tooYoung(was, state):
		fault = fmt.Errorf("%w: the gift ledger begins at %d, and what it had before is not old enough to be gone; %d was acknowledged", ErrLedger, state.FirstSeq, last)
	case id == was.Ledger && holes > was.Holes:
		fault = fmt.Errorf("%w: the gift ledger has lost %d gifts before %d", ErrLedger, holes-was.Holes, state.LastSeq)
	}
	if fault != nil {
		g.log.Error("the gift ledger is not the one that this node knows; clients and settlements start over, and no number is given out again",
			"err", fault, "last", state.LastSeq, "acknowledged", last)
		g.lose(fault)
		if state.LastSeq < last {
			if err := g.skipTo(ctx, last+skipGap, state.LastSeq); err != nil {
				return err
			}
		}
	}
	if fault != nil && id == was.Ledger { // another one has a name of its own
		if err := g.rename(ctx); err != nil {
			return err
		}
	}
	if info, err = g.link.StreamInfo(ctx, link.GiftStream); err != nil {
		return err
	}
	name := ledgerName(info)
	g.id.Store(&name)
	g.here.gift.meet(info.State.LastSeq)
	g.marks.met(link.GiftStream, info.State.LastSeq)
	g.marks.ledger(name, ledgerHoles(info.State))
	g.marks.ended(time.Now(), info.State.LastSeq, fault != nil)
	g.checked = true
	return nil
}

// tooYoung reports whether gifts are gone from the ledger's beginning that have not aged out.
func (g *Ledger) tooYoung(was marked, s jetstream.StreamState) bool {
	return slices.ContainsFunc(was.Days, func(d day) bool {
		return time.Since(time.Unix(d.At, 0)) < g.cfg.GiftAge && s.FirstSeq > d.Seq+1 && was.Last[link.GiftStream] > d.Seq
	})
}

// ledgerHoles is how many sequences between the first and the last hold no gift.
func ledgerHoles(s jetstream.StreamState) uint64 {
	if s.Msgs == 0 || s.LastSeq < s.FirstSeq {
		return 0
	}
	return s.LastSeq - s.FirstSeq + 1 - s.Msgs
}

// rename gives the ledger a new name, and keeps the old one among those that are void.
func (g *Ledger) rename(ctx context.Context) error {
	info, err := g.link.StreamInfo(ctx, link.GiftStream)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, max(g.cfg.StoreTimeout, streamTimeout))
	defer cancel()
	cfg := info.Config
	void := append(strings.FieldsFunc(cfg.Metadata[voidKey], func(r rune) bool { return r == ',' }), ledgerName(info))
	cfg.Metadata = map[string]string{ledgerKey: rand.Text()[:12], voidKey: strings.Join(void[max(0, len(void)-voidKept):], ",")}
	if _, err := g.link.JS.UpdateStream(ctx, cfg); err != nil {
		return fmt.Errorf("name the ledger: %w", err)
	}
	return nil
}

// skipSubject is of no room: no identifier is escaped to "=".
const skipSubject = link.GiftPrefix + "="

// skipGap is for what other nodes acknowledged and this one has not heard of.
const skipGap = 1 << 10

// skipAtOnce is how many fillers are under way at a time.
const skipAtOnce = 256

// skipTo makes the ledger go on behind a sequence, by messages that are nobody's gift and are taken away again. It is slow, and
// happens where a ledger was lost.
func (g *Ledger) skipTo(ctx context.Context, to, last uint64) error {
	g.log.Warn("the gift ledger is brought beyond the numbers that were given out", "from", last, "to", to)
	if g.link.Embedded() { // a sync for each would take minutes
		if err := g.link.Reopen(ctx, false); err != nil {
			return err
		}
	}
	acks := make([]jetstream.PubAckFuture, 0, skipAtOnce)
	for last < to {
		acks = acks[:0]
		for range min(skipAtOnce, to-last) {
			ack, err := g.link.JS.PublishAsync(skipSubject, nil)
			if err != nil {
				return fmt.Errorf("skip numbers of the ledger: %w", err)
			}
			acks = append(acks, ack)
		}
		for _, a := range acks {
			select {
			case ok := <-a.Ok():
				last = max(last, ok.Sequence)
			case err := <-a.Err():
				return fmt.Errorf("skip numbers of the ledger: %w", err)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	if g.link.Embedded() {
		if err := g.link.Reopen(ctx, true); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, max(g.cfg.StoreTimeout, streamTimeout))
	defer cancel()
	s, err := g.link.JS.Stream(ctx, link.GiftStream)
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(skipSubject), jetstream.WithPurgeKeep(1)) // the last keeps the number
	}
	if err != nil {
		return fmt.Errorf("skip numbers of the ledger: %w", err)
	}
	return nil
}

// ledgerPause is the rest between two reads of the proof, so that it takes a small part of a processor.
const ledgerPause = 2 * time.Millisecond

// prove reads all of the ledger once: a damaged record shows when it is read. It ends early with ctx.
func (g *Ledger) prove(ctx context.Context) {
	info, err := g.link.StreamInfo(ctx, link.GiftStream)
	if err != nil || info.State.Msgs == 0 {
		return // the next start proves it
	}
	state := info.State
	found := uint64(0)
	for from := state.FirstSeq; from <= state.LastSeq; {
		got, err := g.link.Read(ctx, link.GiftStream, link.Ask{Seq: from, Next: link.GiftPrefix + ">", Batch: readBatch})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil: // a record that can't be read ends the answer
			from++
			continue
		case len(got) == 0:
			from = state.LastSeq + 1
			continue
		}
		for _, r := range got {
			if r.Seq <= state.LastSeq {
				found++
			}
		}
		from = got[len(got)-1].Seq + 1
		if !link.Rest(ctx, ledgerPause) {
			return
		}
	}
	now, err := g.link.StreamInfo(ctx, link.GiftStream)
	if err != nil || now.State.FirstSeq > state.FirstSeq || found >= state.Msgs { // gifts aged out meanwhile: the count says nothing
		return
	}
	fault := fmt.Errorf("%w: %d of %d gifts up to %d can't be read", ErrLedger, state.Msgs-found, state.Msgs, state.LastSeq)
	g.log.Error("the gift ledger is damaged; clients and settlements start over", "err", fault)
	g.lose(fault)
	if err := g.rename(ctx); err != nil {
		g.log.Warn("the damaged ledger keeps its name until the next start", "err", err)
		return
	}
	if now, err = g.link.StreamInfo(ctx, link.GiftStream); err == nil {
		g.know(now)
	}
}
