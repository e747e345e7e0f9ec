package cluster

import (
	"errors"
	"fmt"
	"time"

	"liveroom/limit"
)

// The bounds of a Call. Within them every number a store computes with is below
// 1<<53, where a double is still exact.
const (
	maxSum     = 1 << 52
	maxSpell   = 800 * 24 * time.Hour
	maxKeyName = 512
)

// Validate returns what is wrong with a call, nil when nothing is. A store
// refuses such a call without effect.
func (c *Call) Validate() error {
	switch {
	case c.Op > OpReset:
		return fmt.Errorf("cluster: op %d is unknown", c.Op)
	case c.Key == "" || len(c.Key) > maxKeyName:
		return fmt.Errorf("cluster: a key has 1 to %d bytes, this one %d", maxKeyName, len(c.Key))
	case c.Node == "" || len(c.Node) > maxKeyName:
		return fmt.Errorf("cluster: a node's name has 1 to %d bytes, this one %d", maxKeyName, len(c.Node))
	case len(c.Tiers) == 0 || len(c.Tiers) > 64:
		return fmt.Errorf("cluster: a call has 1 to 64 tiers, this one %d", len(c.Tiers))
	case c.Want < 0 || c.Want >= len(c.Tiers):
		return fmt.Errorf("cluster: there is no tier %d", c.Want)
	case c.Lease < time.Millisecond || c.Lease > maxSpell:
		return fmt.Errorf("cluster: a lease lasts 1 ms to %s, this one %s", maxSpell, c.Lease)
	case c.Seen < 0 || c.Seen > maxSum || c.LeastSince < 0 || c.MostSince < c.LeastSince || c.MostSince > 4*maxSpell:
		return fmt.Errorf("cluster: seen %d, %s to %s ago, is no time", c.Seen, c.LeastSince, c.MostSince)
	case c.Seq < 0 || c.Seq > maxSum:
		return fmt.Errorf("cluster: seq %d is out of range", c.Seq)
	}
	for _, n := range []int64{c.Received, c.Returned, c.Debt} {
		if n < 0 || n > maxSum {
			return fmt.Errorf("cluster: a sum of %d is out of range", n)
		}
	}
	for _, n := range []int64{c.Hold, c.Ask, c.Least, c.Floor, max(c.Level, -c.Level)} {
		if n < 0 || n > limit.MaxShares {
			return fmt.Errorf("cluster: %d shares are out of range", n)
		}
	}
	return c.validateTiers()
}

func (c *Call) validateTiers() error {
	kind := c.Tiers[0].Kind
	for i := range c.Tiers {
		switch t := &c.Tiers[i]; {
		case t.Kind != kind:
			return errors.New("cluster: all tiers are of one kind")
		case t.Validate() != nil:
			return fmt.Errorf("cluster: tier %d: %w", i, t.Validate())
		}
	}
	slots := c.Op == OpSlot || c.Op == OpFree
	switch {
	case slots != (kind == limit.KindSlots) && c.Op != OpReset:
		return fmt.Errorf("cluster: op %s is not of this kind", c.Op)
	case (c.Op == OpClaim || c.Op == OpGive) && kind != limit.KindBucket:
		return errors.New("cluster: only a bucket can be claimed")
	}
	return nil
}
