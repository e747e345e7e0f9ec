package room

import (
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

// TestOffer: whoever is there is told, whoever comes is welcomed with it, and what is on its way keeps its price.
func TestOffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &till{answers: []error{ErrConflict, nil, ErrRefused}}
		w := newWorld(t, newMemoryBus(), func(c *Config) { c.GiftsBy, c.Till = protocol.GiftsByHook, f })
		a, other := w.join("demo", "ann"), w.join("other", "bob")
		a.give("g1", "rocket", 1) // what becomes of it is not known
		w.hub.Offer(protocol.Catalogue{Version: 7, Gifts: []protocol.CatalogueGift{{ID: "rose", Name: "Rose", Price: 3}}})
		time.Sleep(time.Second)
		for _, v := range []*viewer{a, other} {
			if told := v.seen("gifts"); len(told) != 1 || told[0].Version != 7 || len(told[0].Gifts) != 1 || told[0].Gifts[0].Price != 3 {
				t.Errorf("told %+v", told)
			}
		}
		if late := w.join("demo", "late").at("welcome")[0]; late.Version != 7 || len(late.Gifts) != 1 {
			t.Errorf("welcomed with %+v", late)
		}
		wantCode(t, a.give("g1", "rocket", 1), protocol.OK, "")
		a.give("g2", "rose", 1)
		if f.sales[1].Price != 100 || f.sales[2].Price != 3 {
			t.Errorf("sold for %d and %d", f.sales[1].Price, f.sales[2].Price)
		}
		wantCode(t, a.give("g3", "rocket", 1), protocol.NotFound, protocol.ReasonNotFound)
		w.hub.Offer(protocol.Catalogue{Version: 8})
		time.Sleep(time.Second)
		if told := a.seen("gifts"); len(told) != 2 || told[1].Gifts == nil {
			t.Errorf("told of none: %+v", told)
		}
		w.stop()
	})
}
