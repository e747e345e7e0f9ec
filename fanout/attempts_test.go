package fanout

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"liveroom/fanout/link"
	"liveroom/protocol"
)

// TestAttemptsEndWhileTheyStore: on three servers, of which the ledger's leader is killed, one node stores gifts while another
// ends their attempts at the same time. What an end says is true for ever and for every node: of those that it found nothing of, no gift
// is in the ledger, however late it came.
func TestAttemptsEndWhileTheyStore(t *testing.T) {
	t.Parallel()
	cluster := natsCluster(t)
	var up sync.WaitGroup
	for _, m := range cluster {
		up.Go(func() { m.start(t) })
	}
	up.Wait()
	urls := clusterURLs(cluster)
	a := open(t, Config{NodeID: "a", URLs: urls, Shared: true})
	b := open(t, Config{NodeID: "b", URLs: urls, Shared: true})
	ctx := testContext(t)
	event := protocol.AppendGift(nil, protocol.Gift{User: protocol.User{ID: "ann"}, Gift: "rose", Count: 1})
	const attempts = 200
	type fate struct {
		stored uint64 // by what the storing node was told; 0: it was refused, or nobody knows
		ended  uint64 // what the end said
		known  bool   // that there was an answer to the end
	}
	fates := make([]fate, attempts+1)
	from := a.Store.Payments.LedgerEnd()
	var all sync.WaitGroup
	for n := 1; n <= attempts; n++ {
		if n == attempts/2 { // with some under way
			_, leader := streamOf(t, b, link.GiftStream)
			for _, m := range cluster {
				if m.Name == leader {
					m.kill()
				}
			}
		}
		pause := time.Duration(rand.IntN(2_000_000))
		all.Go(func() {
			r, err := a.Store.Payments.StorePaidGift(ctx, "demo", "ann", fmt.Sprint(n), event, protocol.Payment{Attempt: uint64(n)})
			if err == nil {
				fates[n].stored = r.Seq
			}
		})
		all.Go(func() {
			<-time.After(pause)
			seq, err := b.Store.Payments.EndAttempt(ctx, "demo", uint64(n), from, 0)
			fates[n].ended, fates[n].known = seq, err == nil
		})
		if n%8 == 0 {
			all.Wait()
			eventually(t, "a leader", func() bool { _, err := b.Store.Gifts.GiftsEnd(ctx, "demo"); return err == nil })
		}
	}
	all.Wait()
	found, ends := map[uint64]uint64{}, 0
	eventually(t, "the ledger to be whole", func() bool {
		gifts, err := a.Store.Gifts.Gifts(ctx, "demo", 0, 1000)
		clear(found)
		for _, g := range gifts {
			found[g.Paid.Attempt] = g.Seq
		}
		last, endErr := a.Store.Gifts.GiftsEnd(ctx, "demo")
		return err == nil && endErr == nil && (len(gifts) == 0 || gifts[len(gifts)-1].Seq == last)
	})
	for n, f := range fates[1:] {
		n := uint64(n + 1)
		if f.stored > 0 && found[n] != f.stored {
			t.Errorf("attempt %d was acknowledged as %d, and the ledger has %d", n, f.stored, found[n])
		}
		if f.known && f.ended != found[n] {
			t.Errorf("attempt %d ended with %d, and the ledger has %d", n, f.ended, found[n])
		}
		if f.known {
			ends++
		}
		if n%10 == 0 {
			eventually(t, "an end", func() bool {
				seq, err := a.Store.Payments.EndAttempt(ctx, "demo", n, from, 0)
				if err == nil && seq != found[n] {
					t.Fatalf("asked again, attempt %d ended with %d, and the ledger has %d", n, seq, found[n])
				}
				return err == nil
			})
		}
	}
	t.Logf("%d of %d stored, %d ended", len(found), attempts, ends)
	if len(found) == 0 && ends == 0 {
		t.Error("nothing was stored, and nothing ended")
	}
}
