package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"liveroom/internal/journal"
)

// Letter is a dead letter: an entry that a platform did not take.
type Letter struct {
	Seq   uint64        `json:"seq"` // numbers it among all; not kept in it
	Why   string        `json:"why"`
	Tries int           `json:"tries"`
	At    int64         `json:"at"` // when it was put aside, Unix ms
	Entry journal.Entry `json:"entry"`
}

// KeptLetter is a letter as it is kept.
type KeptLetter struct {
	Seq  uint64
	Data []byte
}

// Letters keeps dead letters, over nodes.
type Letters interface {
	// PutLetter keeps the letter of an entry in the place of an earlier one, on disk before it returns.
	PutLetter(ctx context.Context, webhook, id string, letter []byte) error
	// LettersAfter returns at most limit letters of a webhook with Seq above after, in order.
	LettersAfter(ctx context.Context, webhook string, after uint64, limit int) ([]KeptLetter, error)
	// DropLetter takes one away; it may be gone already.
	DropLetter(ctx context.Context, seq uint64) error
}

// Dead returns at most limit dead letters with Seq above after, in order.
func (c *Courier) Dead(ctx context.Context, after uint64, limit int) ([]Letter, error) {
	kept, err := c.cfg.Letters.LettersAfter(ctx, c.cfg.Name, after, limit)
	if err != nil {
		return nil, err
	}
	out := make([]Letter, len(kept))
	for i, k := range kept {
		if err := json.Unmarshal(k.Data, &out[i]); err != nil {
			return nil, fmt.Errorf("dead letter %d: %w", k.Seq, err)
		}
		out[i].Seq = k.Seq
	}
	return out, nil
}

// MostAgain is how many letters are sent again at a time.
const MostAgain = 100

// SendAgain has the platform take dead letters, the oldest first, those of the numbers or, without any, the first [MostAgain]. It returns how
// many were taken, and why the next one was not; "": there was none.
func (c *Courier) SendAgain(ctx context.Context, seqs []uint64) (sent int, why string, err error) {
	letters, err := c.Dead(ctx, 0, MostAgain)
	if len(seqs) > 0 {
		letters = nil
		slices.Sort(seqs)
		for _, seq := range slices.Compact(seqs) {
			one, fault := c.Dead(ctx, seq-1, 1)
			if err = errors.Join(err, fault); len(one) > 0 && one[0].Seq == seq {
				letters = append(letters, one[0])
			}
		}
	}
	if err != nil {
		return 0, "", err
	}
	for _, l := range letters {
		var receipt Receipt
		if err := call(ctx, c.cfg.Platform, c.cfg.Name, []journal.Entry{l.Entry}, true, &receipt); err != nil {
			return sent, err.Error(), nil
		}
		if len(receipt.Refused) > 0 {
			return sent, "refused again: " + clip(receipt.Refused[0].Why), nil
		}
		if err := c.cfg.Letters.DropLetter(ctx, l.Seq); err != nil {
			return sent, "", err
		}
		sent++
	}
	return sent, "", nil
}

// Discard takes a dead letter of this webhook away; false when there is none of that number.
func (c *Courier) Discard(ctx context.Context, seq uint64) (bool, error) {
	got, err := c.Dead(ctx, max(seq, 1)-1, 1)
	if err != nil || len(got) == 0 || got[0].Seq != seq {
		return false, err
	}
	return true, c.cfg.Letters.DropLetter(ctx, seq)
}

// Set are the couriers of a node.
type Set []*Courier

// Of returns the courier of a consumer; nil: this node is not configured to deliver for it.
func (s Set) Of(consumer string) *Courier {
	for _, c := range s {
		if c.name == consumer {
			return c
		}
	}
	return nil
}
