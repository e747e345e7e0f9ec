package cluster_test

import (
	"testing"
	"time"

	"liveroom/limit"
	"liveroom/limit/cluster"
)

// TestCallValidate breaks a good call in every way a store must not be asked.
func TestCallValidate(t *testing.T) {
	good := func() *cluster.Call {
		return &cluster.Call{Key: "k", Node: "n", Tiers: []limit.Terms{{Size: 10, Num: 1, Den: 1000, Start: 10}}, Lease: time.Second}
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*cluster.Call){
		"op":               func(c *cluster.Call) { c.Op = 99 },
		"no key":           func(c *cluster.Call) { c.Key = "" },
		"no node":          func(c *cluster.Call) { c.Node = "" },
		"no tiers":         func(c *cluster.Call) { c.Tiers = nil },
		"unknown tier":     func(c *cluster.Call) { c.Want = 1 },
		"no lease":         func(c *cluster.Call) { c.Lease = 0 },
		"negative seq":     func(c *cluster.Call) { c.Seq = -1 },
		"time runs back":   func(c *cluster.Call) { c.LeastSince = 2; c.MostSince = 1 },
		"sum":              func(c *cluster.Call) { c.Received = -1 },
		"inexact sum":      func(c *cluster.Call) { c.Returned = 1<<52 + 1 },
		"shares":           func(c *cluster.Call) { c.Ask = 1<<40 + 1 },
		"size":             func(c *cluster.Call) { c.Tiers[0].Size = 0 },
		"start":            func(c *cluster.Call) { c.Tiers[0].Start = 11 },
		"inexact level":    func(c *cluster.Call) { c.Tiers[0].Den = 1 << 52 },
		"no denominator":   func(c *cluster.Call) { c.Tiers[0].Den = 0 },
		"no length":        func(c *cluster.Call) { c.Tiers[0].Kind = limit.KindFixed },
		"kinds differ":     func(c *cluster.Call) { c.Tiers = append(c.Tiers, limit.Terms{Kind: limit.KindSlots, Size: 1}) },
		"slot of a bucket": func(c *cluster.Call) { c.Op = cluster.OpSlot },
		"claimed window": func(c *cluster.Call) {
			c.Op, c.Tiers[0].Kind, c.Tiers[0].Length = cluster.OpClaim, limit.KindLog, time.Minute
		},
	} {
		c := good()
		if spoil(c); c.Validate() == nil {
			t.Errorf("%s passes", name)
		}
	}
}
