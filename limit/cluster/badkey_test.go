package cluster_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/limit"
)

// A key whose calls fail for a while, on a shard that is well, goes by its
// policy for that while and no longer.
func TestOutageOfOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, roomRule(""), time.Millisecond)
		defer w.close()
		n := w.nodes[0]
		n.room("r", 1)
		n.room("other", 1)
		bad := w.key("room:r}").Name
		w.link.badKey.Store(&bad)
		for range 200 {
			n.room("r", 1)
			n.room("other", 1) // so that the breaker stays closed
			time.Sleep(5 * time.Millisecond)
		}
		w.link.badKey.Store(nil)
		time.Sleep(time.Second)
		// Where all demand is here, a share would be half.
		admitted := 0
		const span = 4 * time.Second
		for began := w.clock(); w.clock().Sub(began) < span; {
			if n.room("r", 1).Verdict == limit.Allow {
				admitted++
			}
			time.Sleep(2 * time.Millisecond)
		}
		if want := int(300 * span / time.Second); admitted < want*98/100 {
			t.Errorf("admitted %d of %d after the key was well again", admitted, want)
		}
	})
}

// What a node that closes would spend by its share, the store would never hear of.
func TestCloseSharesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, roomRule(""), time.Millisecond)
		n := w.nodes[0]
		if n.room("r", 1).Verdict != limit.Allow {
			t.Fatal("refused at first")
		}
		if err := n.cluster.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if n.room("r", 1).Verdict == limit.Allow {
				t.Error("admitted after Close")
			}
		}
		w.nodes = w.nodes[1:]
		w.close()
	})
}
