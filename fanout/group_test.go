package fanout

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/fanout/link"
	"liveroom/protocol"
)

// groupsOf returns how many groups went to disk, and how many gifts in them.
func groupsOf(t *testing.T, f *Fabric) (groups uint64, gifts float64) {
	t.Helper()
	families, err := f.cfg.Metrics.(*prometheus.Registry).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "liveroom_bus_gift_group" {
			h := family.GetMetric()[0].GetHistogram()
			return h.GetSampleCount(), h.GetSampleSum()
		}
	}
	t.Fatal("no groups are counted")
	return 0, 0
}

// TestGiftsShareSyncs: gifts that come at the same time are stored in groups, each under its own sequence; one that the ledger has,
// or must not have, is answered for itself and keeps nobody else out; and rooms are shown all in order.
func TestGiftsShareSyncs(t *testing.T) {
	t.Parallel()
	const senders, rooms, had, ended = 600, 5, 20, 7
	f, ctx := open(t, Config{NodeID: "n1", DataDir: t.TempDir(), StoreTimeout: wait}), testContext(t)
	heard := make([]*listener, rooms)
	for i := range rooms {
		heard[i], _ = subscribe(t, f, fmt.Sprint("room", i))
	}
	room := func(i int) string { return fmt.Sprint("room", i%rooms) }
	before := map[int]uint64{}
	for i := range had {
		before[i] = storeGift(t, f, room(i), "u", fmt.Sprint(i), fmt.Sprint("gift", i)).Seq
	}
	for i := range ended {
		if _, err := f.Store.Payments.EndAttempt(ctx, room(0), uint64(1+i), 0, 0); err != nil {
			t.Fatal(err)
		}
	}

	var all sync.WaitGroup
	begin := make(chan struct{})
	answers := make([]protocol.Receipt, senders)
	var refused atomic.Int64
	for i := range senders {
		all.Go(func() {
			<-begin
			r, err := f.Store.Gifts.StoreGift(ctx, room(i), "u", fmt.Sprint(i), fmt.Append(nil, "gift", i))
			if err != nil {
				t.Error("gift", i, err)
			}
			answers[i] = r
		})
	}
	for i := range ended {
		all.Go(func() {
			<-begin
			if _, err := f.Store.Payments.StorePaidGift(ctx, room(0), "p", fmt.Sprint(i), []byte("paid"), protocol.Payment{Attempt: uint64(1 + i)}); errors.Is(err, link.ErrRefused) {
				refused.Add(1)
			} else {
				t.Error("the gift of an attempt that has ended:", err)
			}
		})
	}
	close(begin)
	all.Wait()
	seen := map[uint64]bool{}
	for i, r := range answers {
		if again := i < had; r.Duplicate != again || again && r.Seq != before[i] || seen[r.Seq] {
			t.Errorf("gift %d: %+v, before %d, seen %v", i, r, before[i], seen[r.Seq])
		}
		seen[r.Seq] = true
		if g, err := f.Store.Gifts.Gift(ctx, room(i), r.Seq); err != nil || string(g.Event) != fmt.Sprint("gift", i) {
			t.Errorf("gift %d under %d is %q, %v", i, r.Seq, g.Event, err)
		}
	}
	if refused.Load() != ended {
		t.Errorf("%d of %d refused", refused.Load(), ended)
	}
	for i, h := range heard {
		last := uint64(0)
		for range senders / rooms {
			g := receive(t, h.gifts)
			if g.Prev != last || g.Seq <= last {
				t.Fatalf("room %d: gift %d follows %d, said to follow %d", i, g.Seq, last, g.Prev)
			}
			last = g.Seq
		}
	}
	if groups, gifts := groupsOf(t, f); gifts != senders+ended+had || groups > (senders+ended)/4+had {
		t.Errorf("%v gifts in %d groups", gifts, groups)
	}
}
