package fanout

import (
	"context"
	"fmt"

	"liveroom/protocol"
)

// Gift returns one gift of the room by its sequence; its Prev is not filled in. ErrNotFound when the ledger has none,
// or another room's, under it.
func (f *Fabric) Gift(ctx context.Context, room string, seq uint64) (protocol.StoredGift, error) {
	if seq == 0 {
		return protocol.StoredGift{}, ErrNotFound
	}
	got, err := f.read(ctx, giftStream, directGet{Seq: seq, Next: giftSubject(room), Batch: 1})
	if err != nil {
		return protocol.StoredGift{}, err
	}
	if len(got) == 0 || got[0].Seq != seq {
		return protocol.StoredGift{}, ErrNotFound
	}
	return protocol.StoredGift{Seq: seq, Event: got[0].Data, Time: got[0].Time, Paid: got[0].Paid}, nil
}

// Gifts returns the room's gifts with Seq greater than after, oldest first, at most limit (1 to 1000, else an error).
// The first one's Prev equals after exactly if after is a gift of this room that the ledger still has, or 0 and
// nothing has aged out before it: so a reader knows whether it missed something.
func (f *Fabric) Gifts(ctx context.Context, room string, after uint64, limit int) ([]protocol.StoredGift, error) {
	if limit < 1 || limit > 1000 {
		return nil, fmt.Errorf("gifts of room %s: limit %d is not in 1 to 1000", room, limit)
	}
	var prev uint64
	if after > 0 {
		before, err := f.read(ctx, giftStream, directGet{MultiLast: []string{giftSubject(room)}, UpToSeq: after})
		if err != nil {
			return nil, err
		}
		if len(before) > 0 {
			prev = before[0].Seq
		}
	}
	return f.giftsFrom(ctx, room, after, prev, limit)
}

// giftsFrom reads on from after, where prev is known to be the gift before.
func (f *Fabric) giftsFrom(ctx context.Context, room string, after, prev uint64, limit int) ([]protocol.StoredGift, error) {
	got, err := f.read(ctx, giftStream, directGet{Seq: after + 1, Next: giftSubject(room), Batch: limit})
	if err != nil {
		return nil, err
	}
	gifts := make([]protocol.StoredGift, 0, len(got))
	for _, r := range got {
		gifts = append(gifts, protocol.StoredGift{Seq: r.Seq, Prev: prev, Event: r.Data, Time: r.Time, Paid: r.Paid})
		prev = r.Seq
	}
	return gifts, nil
}

// LedgerID tells this ledger from any other, whose sequences say nothing here; the same on every node.
func (f *Fabric) LedgerID() string {
	if id := f.ledgerID.Load(); id != nil {
		return *id
	}
	return ""
}

// GiftsEnd is [Fabric.LastGift] as the stream's leader has it: nothing acknowledged is beyond it.
func (f *Fabric) GiftsEnd(ctx context.Context, room string) (uint64, error) {
	r, _, err := f.leaderGet(ctx, giftStream, leaderGet{Last: giftSubject(room)})
	return r.Seq, err
}

// LastGift returns the sequence of the room's last gift, 0 for none.
func (f *Fabric) LastGift(ctx context.Context, room string) (uint64, error) {
	r, _, err := f.last(ctx, giftStream, giftSubject(room))
	return r.Seq, err
}
