package ledger

import (
	"context"
	"errors"
	"testing"
	"time"

	"liveroom/limit"
	"liveroom/limit/cluster"
)

// bench is a ledger with a clock that stands until it is moved.
type bench struct {
	*Ledger
	t   *testing.T
	now time.Time
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, now: time.UnixMicro(1_790_000_000_000_000)}
	b.Ledger = New(func() time.Time { return b.now })
	return b
}

func (b *bench) pass(d time.Duration) { b.now = b.now.Add(d) }

// ask carries a call out that must not fail.
func (b *bench) ask(c cluster.Call) cluster.Reply {
	b.t.Helper()
	c = filled(c)
	b.Do(context.Background(), []*cluster.Call{&c})
	if c.Err != nil {
		b.t.Fatalf("%s by %s: %v", c.Op, c.Node, c.Err)
	}
	if err := b.Check(); err != nil {
		b.t.Fatal(err)
	}
	return c.Reply
}

// ten is a bucket of ten that refills one in a second.
var ten = limit.Terms{Size: 10, Num: 1, Den: 1_000_000, Start: 10}

func filled(c cluster.Call) cluster.Call {
	if c.Key == "" {
		c.Key = "{k}"
	}
	if c.Tiers == nil {
		c.Tiers = []limit.Terms{ten}
	}
	if c.Lease == 0 {
		c.Lease = time.Second / 2
	}
	return c
}

func (b *bench) want(what string, have, want int64) {
	b.t.Helper()
	if have != want {
		b.t.Errorf("%s: have %d, want %d", what, have, want)
	}
}

func TestDraw(t *testing.T) {
	b := newBench(t)
	r := b.ask(cluster.Call{Node: "a", Seq: 1, Ask: 7, Least: 1})
	b.want("granted", r.Granted, 7)
	b.want("left", r.Left, 3)
	r = b.ask(cluster.Call{Node: "b", Seq: 1, Ask: 5, Least: 4})
	b.want("granted", r.Granted, 0)
	b.want("wait", int64(r.Wait), int64(1500*time.Millisecond)) // a may hold 7 for half of it
	b.want("others", int64(r.Others), 1)
	b.pass(r.Wait - time.Microsecond)
	r = b.ask(cluster.Call{Node: "b", Seq: 2, Ask: 5, Least: 4})
	b.want("granted a microsecond early", r.Granted, 0)
	b.want("wait", int64(r.Wait), int64(time.Microsecond))
	b.pass(r.Wait)
	b.want("granted on time", b.ask(cluster.Call{Node: "b", Seq: 3, Ask: 5, Least: 4}).Granted, 4)
	b.want("wait for more than there can be", int64(b.ask(cluster.Call{Node: "b", Seq: 4, Received: 4, Ask: 11, Least: 11}).Wait), int64(limit.Never))
}

// TestHeldRefill shows that what is refilled while a lease keeps the bucket at
// its cap is lost, also when nobody asks until the lease is over.
func TestHeldRefill(t *testing.T) {
	b := newBench(t)
	b.ask(cluster.Call{Node: "a", Seq: 1, Ask: 10, Least: 1, Lease: 3 * time.Second})
	b.pass(5 * time.Second)
	b.want("left", b.ask(cluster.Call{Node: "b", Seq: 1}).Left, 2)
}

func TestReturn(t *testing.T) {
	b := newBench(t)
	b.ask(cluster.Call{Node: "a", Seq: 1, Ask: 10, Least: 1})
	again := cluster.Call{Node: "a", Seq: 2, Received: 10, Returned: 6, Hold: 1}
	b.want("left", b.ask(again).Left, 6)
	b.want("left after the same call", b.ask(again).Left, 6)
	again.Seq++
	b.want("left after the same sum", b.ask(again).Left, 6)
	b.pass(501 * time.Millisecond)
	b.want("left after the lease", b.ask(cluster.Call{Node: "a", Seq: 4, Received: 10, Returned: 7}).Left, 6)
}

func TestLostReply(t *testing.T) {
	b := newBench(t)
	first := cluster.Call{Node: "a", Seq: 1, Ask: 4, Least: 1}
	b.ask(first)
	b.want("granted again", b.ask(first).Granted, 4)
	b.want("left", b.ask(cluster.Call{Node: "a", Seq: 2}).Left, 10) // it never heard of them
	c := filled(first)
	if b.Do(context.Background(), []*cluster.Call{&c}); !errors.Is(c.Err, cluster.ErrStale) {
		t.Errorf("an overtaken call: %v", c.Err)
	}
}

func TestLostMemory(t *testing.T) {
	b := newBench(t)
	b.Replicate(time.Second)
	b.ask(cluster.Call{Node: "a", Seq: 1, Ask: 2, Least: 1})
	b.pass(2 * time.Second)
	b.ask(cluster.Call{Node: "a", Seq: 2, Received: 2, Ask: 8, Least: 1})
	b.pass(100 * time.Millisecond)
	before, _ := b.Beat(context.Background(), "ledger")
	b.FailOver("ledger", 500*time.Millisecond, 5*time.Second)
	if after, _ := b.Beat(context.Background(), "ledger"); after == before {
		t.Error("a fail-over does not show")
	}
	// The replica lacks the grant of eight and its clock is ahead.
	r := b.ask(cluster.Call{Node: "a", Seq: 3, Received: 10, Hold: 5, Seen: b.now.UnixMicro() - 100_000,
		LeastSince: 99 * time.Millisecond, MostSince: 101 * time.Millisecond})
	b.want("left", r.Left, 1)
	b.want("outstanding", b.Keys()[0].Outstanding, 5)
}

func TestWipe(t *testing.T) {
	b := newBench(t)
	b.ask(cluster.Call{Node: "a", Seq: 1, Ask: 10, Least: 1})
	b.Wipe("ledger")
	r := b.ask(cluster.Call{Node: "a", Seq: 2, Received: 10, Hold: 3, Ask: 1, Least: 1, Lost: true})
	b.want("granted", r.Granted, 0)
	b.want("wait", int64(r.Wait), int64(1500*time.Millisecond)) // what may be out, and a token
	b.pass(r.Wait)
	b.want("granted later", b.ask(cluster.Call{Node: "a", Seq: 3, Received: 10, Ask: 1, Least: 1}).Granted, 1)
}

func TestDebt(t *testing.T) {
	b := newBench(t)
	b.want("left", b.ask(cluster.Call{Node: "a", Seq: 1, Debt: 12}).Left, 0)
	b.want("left, told again", b.ask(cluster.Call{Node: "a", Seq: 2, Debt: 12}).Left, 0)
	b.want("left, more", b.ask(cluster.Call{Node: "a", Seq: 3, Debt: 15}).Left, -3)
}

func TestClaim(t *testing.T) {
	b := newBench(t)
	b.ask(cluster.Call{Node: "a#1", Seq: 1, Ask: 4, Least: 1})
	r := b.ask(cluster.Call{Op: cluster.OpClaim, Node: "b#1", Seq: 1})
	if r.Owner != "" || r.Wait != time.Second/2 {
		t.Errorf("claimed while others hold: %+v", r)
	}
	r = b.ask(cluster.Call{Op: cluster.OpClaim, Node: "a#1", Seq: 2, Received: 4, Returned: 3})
	if r.Owner != "a#1" || r.Left != 9 {
		t.Errorf("claim with own leases: %+v", r)
	}
	b.pass(time.Minute)
	r = b.ask(cluster.Call{Op: cluster.OpClaim, Node: "a#1", Seq: 3, Received: 4, Returned: 3})
	if r.Owner != "a#1" || r.Left != 9 {
		t.Errorf("a claim confirmed: %+v", r)
	}
	if r = b.ask(cluster.Call{Node: "b#1", Seq: 2, Ask: 1, Least: 1, Steal: "a#0", Free: "a#2"}); r.Owner != "a#1" || r.Granted != 0 {
		t.Errorf("a draw on a claimed bucket: %+v", r)
	}
	give := cluster.Call{Op: cluster.OpGive, Node: "a#1", Seq: 4, Level: 2}
	b.ask(give)
	b.want("granted after the give", b.ask(cluster.Call{Node: "b#1", Seq: 3, Ask: 5, Least: 1}).Granted, 2)
	b.ask(give)
	b.want("left after the same give", b.ask(cluster.Call{Node: "b#1", Seq: 4, Received: 2}).Left, 0)
}

func TestStealFree(t *testing.T) {
	b := newBench(t)
	b.ask(cluster.Call{Op: cluster.OpClaim, Node: "a", Seq: 1})
	b.want("granted of a stolen one", b.ask(cluster.Call{Node: "b", Seq: 1, Ask: 1, Least: 1, Steal: "a"}).Granted, 0)
	b.pass(time.Second)
	b.want("granted a second later", b.ask(cluster.Call{Node: "b", Seq: 2, Ask: 9, Least: 1}).Granted, 1)
	b.pass(time.Second)
	b.ask(cluster.Call{Op: cluster.OpClaim, Node: "b", Seq: 3, Received: 1})
	b.pass(3 * time.Second)
	// Its owner may never have heard of the claim: the bucket is what it was, refilled since, not full.
	b.want("granted of a freed one", b.ask(cluster.Call{Node: "a", Seq: 2, Ask: 99, Least: 1, Free: "b"}).Granted, 4)
}

func TestOwnedAfterWipe(t *testing.T) {
	b := newBench(t)
	b.ask(cluster.Call{Op: cluster.OpClaim, Node: "a", Seq: 1})
	b.Wipe("ledger")
	r := b.ask(cluster.Call{Op: cluster.OpClaim, Node: "a", Seq: 2, Owned: true, Lost: true, Level: 6})
	if r.Owner != "a" || r.Left != 6 {
		t.Errorf("%+v", r)
	}
	b.Wipe("ledger")
	if r = b.ask(cluster.Call{Op: cluster.OpClaim, Node: "b", Seq: 1, Lost: true}); r.Owner != "" || r.Wait != time.Second/2 {
		t.Errorf("a claim of a lost key: %+v", r)
	}
}

func TestGiveFull(t *testing.T) {
	b := newBench(t)
	b.ask(cluster.Call{Op: cluster.OpClaim, Node: "a", Seq: 1})
	b.ask(cluster.Call{Op: cluster.OpGive, Node: "a", Seq: 2, Level: 10})
	if n := len(b.Keys()); n != 0 {
		t.Errorf("%d keys", n)
	}
}

func TestTiers(t *testing.T) {
	b := newBench(t)
	tiers := []limit.Terms{{Size: 200, Num: 1, Den: 5_000, Start: 200}, {Size: 80, Num: 1, Den: 25_000, Start: 80}}
	ask := func(seq int64, want int, stay bool) cluster.Reply {
		return b.ask(cluster.Call{Node: "a", Seq: seq, Tiers: tiers, Want: want, Stay: stay})
	}
	b.want("tier", int64(ask(1, 0, true).Tier), 0)
	b.want("tier", int64(ask(2, 1, false).Tier), 0)
	b.pass(9 * time.Second)
	b.want("tier", int64(ask(3, 1, true).Tier), 0) // a break
	b.want("tier", int64(ask(4, 1, false).Tier), 0)
	b.pass(10 * time.Second)
	r := ask(5, 1, false)
	b.want("tier", int64(r.Tier), 1)
	b.want("left", r.Left, 80)
	r = b.ask(cluster.Call{Node: "a", Seq: 6, Tiers: tiers[:1]})
	b.want("left under other terms, nothing used", r.Left, 200)
}

func TestFixedWindow(t *testing.T) {
	b := newBench(t)
	b.now = b.now.Truncate(time.Minute)
	terms := []limit.Terms{{Kind: limit.KindFixed, Size: 5, Start: 5, Length: time.Minute}}
	b.pass(59900 * time.Millisecond)
	r := b.ask(cluster.Call{Node: "a", Seq: 1, Ask: 3, Least: 1, Tiers: terms})
	b.want("granted", r.Granted, 3)
	b.want("ends", int64(r.Ends), int64(100*time.Millisecond))
	r = b.ask(cluster.Call{Node: "b", Seq: 1, Ask: 3, Least: 3, Tiers: terms})
	b.want("wait", int64(r.Wait), int64(100*time.Millisecond))
	b.pass(r.Wait)
	b.want("granted in the next", b.ask(cluster.Call{Node: "b", Seq: 2, Ask: 5, Least: 1, Tiers: terms}).Granted, 5)
	b.want("left after a return of the one before", b.ask(cluster.Call{Node: "a", Seq: 2, Received: 3, Returned: 3, Tiers: terms}).Left, 0)
}

func TestSlidingKinds(t *testing.T) {
	for _, kind := range []limit.Kind{limit.KindSliding, limit.KindLog} {
		b := newBench(t)
		terms := []limit.Terms{{Kind: kind, Size: 5, Start: 5, Length: 59500 * time.Millisecond}}
		b.now = b.now.Truncate(time.Minute)
		b.want("granted", b.ask(cluster.Call{Node: "a", Seq: 1, Ask: 4, Least: 1, Tiers: terms}).Granted, 4)
		b.pass(100 * time.Millisecond)
		b.want("left after a return", b.ask(cluster.Call{Node: "a", Seq: 2, Received: 4, Returned: 3, Hold: 1, Tiers: terms}).Left, 4)
		b.want("granted to another", b.ask(cluster.Call{Node: "b", Seq: 1, Ask: 9, Least: 1, Tiers: terms}).Granted, 4)
		r := b.ask(cluster.Call{Node: "b", Seq: 2, Received: 4, Ask: 1, Least: 1, Tiers: terms})
		b.pass(r.Wait - time.Microsecond)
		b.want("granted a microsecond early", b.ask(cluster.Call{Node: "c", Seq: 1, Ask: 1, Least: 1, Tiers: terms}).Granted, 0)
		b.pass(time.Microsecond)
		b.want("granted on time", b.ask(cluster.Call{Node: "c", Seq: 2, Ask: 1, Least: 1, Tiers: terms}).Granted, 1)
	}
}

func TestSlots(t *testing.T) {
	b := newBench(t)
	terms := []limit.Terms{{Kind: limit.KindSlots, Size: 2, Start: 2}}
	ask := func(op cluster.Op, seq int64) cluster.Reply {
		return b.ask(cluster.Call{Op: op, Node: "a", Seq: seq, Ask: 1, Least: 1, Tiers: terms, Lease: time.Minute})
	}
	b.want("granted", ask(cluster.OpSlot, 1).Granted, 1)
	b.want("granted again", ask(cluster.OpSlot, 1).Granted, 1)
	b.pass(time.Second)
	b.want("granted", ask(cluster.OpSlot, 2).Granted, 1)
	r := ask(cluster.OpSlot, 3)
	b.want("granted a third", r.Granted, 0)
	b.want("wait", int64(r.Wait), int64(59*time.Second))
	ask(cluster.OpFree, 4) // before its call came
	ask(cluster.OpFree, 1)
	b.want("granted though freed", ask(cluster.OpSlot, 4).Granted, 0)
	b.want("granted", ask(cluster.OpSlot, 3).Granted, 1)
}

func TestReset(t *testing.T) {
	b := newBench(t)
	b.ask(cluster.Call{Node: "a", Seq: 1, Ask: 10, Least: 1})
	b.ask(cluster.Call{Node: "a", Seq: 2, Received: 10, Hold: 4})
	b.want("left", b.ask(cluster.Call{Op: cluster.OpReset, Node: "x", Seq: 1}).Left, 6)
}

// TestKeysEnd shows that a key that says nothing more is gone by itself.
func TestKeysEnd(t *testing.T) {
	b := newBench(t)
	r := b.ask(cluster.Call{Node: "a", Seq: 1, Ask: 10, Least: 1})
	b.pass(r.Keep - time.Second)
	b.want("left", b.ask(cluster.Call{Node: "b", Seq: 1}).Left, 10)
	b.pass(time.Hour)
	b.want("keys", int64(len(b.Keys())), 0)
}
