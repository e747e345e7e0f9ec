package fanout

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// ledgerKey names the ledger in its stream's metadata, once it has lost gifts; until then the instant of its making does.
	ledgerKey = "liveroom.ledger"
	// voidKey lists the names that it had before, the last voidKept of them.
	voidKey  = "liveroom.ledger.void"
	voidKept = 16
)

// ledgerName is at most 22 of 0-9 A-Z a-z.
func ledgerName(info *jetstream.StreamInfo) string {
	if name := info.Config.Metadata[ledgerKey]; name != "" {
		return name
	}
	return streamName(info)
}

// knowLedger keeps the ledger's name; another node may have given it a new one.
func (f *Fabric) knowLedger(info *jetstream.StreamInfo) {
	name, holes := ledgerName(info), ledgerHoles(info.State)
	if was := f.LedgerID(); name != was {
		f.ledgerID.Store(&name)
		if was == "" {
			return // checkLedger compares it with the marks first
		}
	}
	if m := f.marks.read(); f.running.Load() && (m.Ledger != name || holes < m.Holes) {
		f.marks.ledger(name, holes)
	}
}

// ErrLedger says that what is stored is not what was acknowledged: it is another store, or a shorter one.
var ErrLedger = errors.New("fanout: the store has lost what it had acknowledged")

// LedgerWhole returns what was found lost since this node started, nil for nothing.
func (f *Fabric) LedgerWhole() error {
	if e := f.lost.Load(); e != nil {
		return *e
	}
	return nil
}

func (f *Fabric) lose(err error) { f.lost.CompareAndSwap(nil, &err) }

// checkStore compares the streams with this node's marks, before anything is written: what is shorter or another one is said
// with both numbers, and no sequence of a gift is given out again.
func (f *Fabric) checkStore(ctx context.Context, known bool) error {
	was := f.marks.read()
	if err := f.checkRevoked(ctx, was); err != nil {
		return err
	}
	for _, name := range []string{rulesStream, settingsStream} {
		info, err := f.streamInfo(ctx, name)
		if err != nil {
			return err
		}
		if end, last := info.State.LastSeq, was.Last[name]; end < last || last > 0 && info.State.FirstSeq > last {
			f.log.Error("a stream is shorter than what this node knows of it", "stream", name, "last", end, "acknowledged", last)
			f.lose(fmt.Errorf("%w: %s ends at %d, and %d was acknowledged", ErrLedger, name, end, last))
		}
		if info.State.Msgs > 0 {
			f.marks.met(name, info.State.LastSeq)
		}
	}
	return f.checkLedger(ctx, was, known)
}

// checkRevoked refuses a store that knows less of what was revoked than this node: a token would be good again.
func (f *Fabric) checkRevoked(ctx context.Context, was marked) error {
	info, err := f.streamInfo(ctx, revokedStream)
	if err != nil {
		return err
	}
	count, have := uint64(0), info.State
	for from := uint64(1); ; {
		got, err := f.read(ctx, revokedStream, directGet{Seq: from, Next: "$KV." + revokedBucket + ".>", Batch: fillBatch})
		if err != nil {
			return fmt.Errorf("read what is revoked: %w", err)
		}
		if len(got) == 0 {
			break
		}
		count += uint64(len(got))
		from = got[len(got)-1].Seq + 1
	}
	last, another := was.Last[revokedStream], was.Revoked != "" && was.Revoked != streamName(info)
	if last > 0 && another || have.LastSeq < last || count < have.Msgs {
		return fmt.Errorf("%w: of what was revoked it has %d of %d, up to number %d, and %d was acknowledged; put a newer copy of %s back, or remove %s from the data directory to go on without what is missing",
			ErrLedger, count, have.Msgs, have.LastSeq, last, f.storePath(revokedStream), MarksFile)
	}
	f.marks.revoked(streamName(info))
	if have.Msgs > 0 {
		f.marks.met(revokedStream, have.LastSeq)
	}
	return nil
}

// streamName tells a stream from another one of its name.
func streamName(info *jetstream.StreamInfo) string {
	return strconv.FormatInt(info.Created.UnixNano(), 36)
}

// checkLedger looks at the gifts.
func (f *Fabric) checkLedger(ctx context.Context, was marked, known bool) error {
	info, err := f.streamInfo(ctx, giftStream)
	if err != nil {
		return err
	}
	state, last, holes, id := info.State, was.Last[giftStream], ledgerHoles(info.State), ledgerName(info)
	var fault error
	switch {
	case !known:
	case was.Ledger != "" && id != was.Ledger && !slices.Contains(strings.Split(info.Config.Metadata[voidKey], ","), was.Ledger):
		fault = fmt.Errorf("%w: the gift ledger is another one (%s, and it was %s); it begins at %d, and %d was acknowledged", ErrLedger, id, was.Ledger, state.FirstSeq, last)
	case state.LastSeq < last:
		fault = fmt.Errorf("%w: the gift ledger ends at %d, and %d was acknowledged", ErrLedger, state.LastSeq, last)
	case f.tooYoung(was, state):
		fault = fmt.Errorf("%w: the gift ledger begins at %d, and what it had before is not old enough to be gone; %d was acknowledged", ErrLedger, state.FirstSeq, last)
	case id == was.Ledger && holes > was.Holes:
		fault = fmt.Errorf("%w: the gift ledger has lost %d gifts before %d", ErrLedger, holes-was.Holes, state.LastSeq)
	}
	if fault != nil {
		f.log.Error("the gift ledger is not the one that this node knows; clients and settlements start over, and no number is given out again",
			"err", fault, "last", state.LastSeq, "acknowledged", last)
		f.lose(fault)
		if state.LastSeq < last {
			if err := f.skipTo(ctx, last+skipGap, state.LastSeq); err != nil {
				return err
			}
		}
	}
	if fault != nil && id == was.Ledger { // another one has a name of its own
		if err := f.renameLedger(ctx); err != nil {
			return err
		}
	}
	if info, err = f.streamInfo(ctx, giftStream); err != nil {
		return err
	}
	name := ledgerName(info)
	f.ledgerID.Store(&name)
	f.known.gift.meet(info.State.LastSeq)
	f.marks.met(giftStream, info.State.LastSeq)
	f.marks.ledger(name, ledgerHoles(info.State))
	f.marks.ended(time.Now(), info.State.LastSeq, fault != nil)
	return nil
}

// tooYoung reports whether gifts are gone from the ledger's beginning that have not aged out.
func (f *Fabric) tooYoung(was marked, s jetstream.StreamState) bool {
	return slices.ContainsFunc(was.Days, func(d day) bool {
		return time.Since(time.Unix(d.At, 0)) < f.cfg.GiftAge && s.FirstSeq > d.Seq+1 && was.Last[giftStream] > d.Seq
	})
}

// ledgerHoles is how many sequences between the first and the last hold no gift.
func ledgerHoles(s jetstream.StreamState) uint64 {
	if s.Msgs == 0 || s.LastSeq < s.FirstSeq {
		return 0
	}
	return s.LastSeq - s.FirstSeq + 1 - s.Msgs
}

// renameLedger gives the ledger a new name, and keeps the old one among those that are void.
func (f *Fabric) renameLedger(ctx context.Context) error {
	info, err := f.streamInfo(ctx, giftStream)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, max(f.cfg.StoreTimeout, streamTimeout))
	defer cancel()
	cfg := info.Config
	void := append(strings.FieldsFunc(cfg.Metadata[voidKey], func(r rune) bool { return r == ',' }), ledgerName(info))
	cfg.Metadata = map[string]string{ledgerKey: rand.Text()[:12], voidKey: strings.Join(void[max(0, len(void)-voidKept):], ",")}
	if _, err := f.js.UpdateStream(ctx, cfg); err != nil {
		return fmt.Errorf("name the ledger: %w", err)
	}
	return nil
}

// skipSubject is of no room: no identifier is escaped to "=".
const skipSubject = giftPrefix + "="

// skipGap is for what other nodes acknowledged and this one has not heard of.
const skipGap = 1 << 10

// skipAtOnce is how many fillers are under way at a time.
const skipAtOnce = 256

// skipTo makes the ledger go on behind a sequence, by messages that are nobody's gift and are taken away again. It is slow, and
// happens where a ledger was lost.
func (f *Fabric) skipTo(ctx context.Context, to, last uint64) error {
	f.log.Warn("the gift ledger is brought beyond the numbers that were given out", "from", last, "to", to)
	if f.server != nil { // a sync for each would take minutes
		if err := f.reopenServer(ctx, false); err != nil {
			return err
		}
	}
	acks := make([]jetstream.PubAckFuture, 0, skipAtOnce)
	for last < to {
		acks = acks[:0]
		for range min(skipAtOnce, to-last) {
			ack, err := f.js.PublishAsync(skipSubject, nil)
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
	if f.server != nil {
		if err := f.reopenServer(ctx, true); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, max(f.cfg.StoreTimeout, streamTimeout))
	defer cancel()
	s, err := f.js.Stream(ctx, giftStream)
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

// proveLedger reads all of the ledger once: a damaged record shows when it is read. It ends early with ctx.
func (f *Fabric) proveLedger(ctx context.Context) {
	info, err := f.streamInfo(ctx, giftStream)
	if err != nil || info.State.Msgs == 0 {
		return // the next start proves it
	}
	state := info.State
	found := uint64(0)
	for from := state.FirstSeq; from <= state.LastSeq; {
		got, err := f.read(ctx, giftStream, directGet{Seq: from, Next: giftPrefix + ">", Batch: fillBatch})
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
		select {
		case <-time.After(ledgerPause):
		case <-ctx.Done():
			return
		}
	}
	now, err := f.streamInfo(ctx, giftStream)
	if err != nil || now.State.FirstSeq > state.FirstSeq || found >= state.Msgs { // gifts aged out meanwhile: the count says nothing
		return
	}
	fault := fmt.Errorf("%w: %d of %d gifts up to %d can't be read", ErrLedger, state.Msgs-found, state.Msgs, state.LastSeq)
	f.log.Error("the gift ledger is damaged; clients and settlements start over", "err", fault)
	f.lose(fault)
	if err := f.renameLedger(ctx); err != nil {
		f.log.Warn("the damaged ledger keeps its name until the next start", "err", err)
		return
	}
	if now, err = f.streamInfo(ctx, giftStream); err == nil {
		f.knowLedger(now)
	}
}

// storePath is where an embedded stream lies on disk, and for other servers its name.
func (f *Fabric) storePath(stream string) string {
	if f.server == nil {
		return "the stream " + stream
	}
	return filepath.Join(f.cfg.DataDir, "nats", "jetstream", "$G", "streams", stream)
}

// unread returns an error when a stream that the embedded server does not know lies on disk all the same: it was damaged, and
// making it anew would destroy what is left.
func (f *Fabric) unread(stream string) error {
	if f.server == nil {
		return nil
	}
	path := f.storePath(stream)
	left, err := os.ReadDir(path)
	if err != nil || len(left) == 0 {
		return nil // nothing is there to be kept
	}
	return fmt.Errorf("%w: %s can't be read; put a copy of it back, or move it away to begin a new one", ErrLedger, path)
}
