package limit

import (
	"errors"
	"fmt"
	"time"
)

// The bounds of a Call. Within them every number a store computes with is below
// 1<<53, where a double is still exact.
const (
	maxShares  = 1 << 40
	maxLevel   = 1 << 52
	maxSum     = 1 << 52
	maxSpell   = 800 * 24 * time.Hour
	maxKeyName = 512
)

// Validate returns what is wrong with a call, nil when nothing is. A store
// refuses such a call without effect.
func (c *Call) Validate() error {
	switch {
	case c.Op > OpReset:
		return fmt.Errorf("limit: op %d is unknown", c.Op)
	case c.Key == "" || len(c.Key) > maxKeyName:
		return fmt.Errorf("limit: a key has 1 to %d bytes, this one %d", maxKeyName, len(c.Key))
	case c.Node == "" || len(c.Node) > maxKeyName:
		return fmt.Errorf("limit: a node's name has 1 to %d bytes, this one %d", maxKeyName, len(c.Node))
	case len(c.Tiers) == 0 || len(c.Tiers) > 64:
		return fmt.Errorf("limit: a call has 1 to 64 tiers, this one %d", len(c.Tiers))
	case c.Want < 0 || c.Want >= len(c.Tiers):
		return fmt.Errorf("limit: there is no tier %d", c.Want)
	case c.Lease < time.Millisecond || c.Lease > maxSpell:
		return fmt.Errorf("limit: a lease lasts 1 ms to %s, this one %s", maxSpell, c.Lease)
	case c.Seen < 0 || c.Seen > maxSum || c.LeastSince < 0 || c.MostSince < c.LeastSince || c.MostSince > 4*maxSpell:
		return fmt.Errorf("limit: seen %d, %s to %s ago, is no time", c.Seen, c.LeastSince, c.MostSince)
	case c.Seq < 0 || c.Seq > maxSum:
		return fmt.Errorf("limit: seq %d is out of range", c.Seq)
	}
	for _, n := range []int64{c.Received, c.Returned, c.Debt} {
		if n < 0 || n > maxSum {
			return fmt.Errorf("limit: a sum of %d is out of range", n)
		}
	}
	for _, n := range []int64{c.Hold, c.Ask, c.Least, c.Floor, max(c.Level, -c.Level)} {
		if n < 0 || n > maxShares {
			return fmt.Errorf("limit: %d shares are out of range", n)
		}
	}
	for i := range c.Tiers {
		if err := c.Tiers[i].validate(c); err != nil {
			return fmt.Errorf("limit: tier %d: %w", i, err)
		}
	}
	return nil
}

func (t *Terms) validate(c *Call) error {
	slots := c.Op == OpSlot || c.Op == OpFree
	switch {
	case t.Kind > KindSlots:
		return fmt.Errorf("kind %d is unknown", t.Kind)
	case t.Kind != c.Tiers[0].Kind:
		return errors.New("all tiers are of one kind")
	case slots != (t.Kind == KindSlots) && c.Op != OpReset:
		return fmt.Errorf("op %s is not of this kind", c.Op)
	case (c.Op == OpClaim || c.Op == OpGive) && t.Kind != KindBucket:
		return errors.New("only a bucket can be claimed")
	case t.Size < 1 || t.Size > maxShares || t.Start < 0 || t.Start > t.Size:
		return fmt.Errorf("size %d and start %d are out of range", t.Size, t.Start)
	case t.Kind == KindBucket:
		if t.Num < 0 || t.Num > maxLevel || t.Den < 1 || t.Size > maxLevel/t.Den {
			return fmt.Errorf("%d shares in %d µs are out of range", t.Num, t.Den)
		}
	case t.Kind != KindSlots && (t.Length < time.Millisecond || t.Length > maxSpell):
		return fmt.Errorf("a window lasts 1 ms to %s, this one %s", maxSpell, t.Length)
	}
	return nil
}
