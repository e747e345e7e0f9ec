package fanout

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"liveroom/fanout/link"
	"liveroom/fanout/store"
	"liveroom/protocol"
)

// TestAnIntentIsThereUntilItIsDropped: one per key, in order, over a restart, and each under a number of its own.
func TestAnIntentIsThereUntilItIsDropped(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), testContext(t)
	f := openUnclosed(t, Config{NodeID: "n1", DataDir: dir})
	intend := func(id string) uint64 {
		t.Helper()
		attempt, err := f.Store.Payments.Intend(ctx, "demo", "a|nn", id, []byte(id))
		if err != nil {
			t.Fatal(err)
		}
		return attempt
	}
	first, second := intend("1"), intend("2")
	if _, err := f.Store.Payments.Intend(ctx, "demo", "a|nn", "1", nil); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the same key again: %v", err)
	}
	if err := f.Store.Payments.DropIntent(ctx, first); err != nil {
		t.Fatal(err)
	}
	if err := f.Store.Payments.DropIntent(ctx, first); err != nil {
		t.Errorf("dropped again: %v", err)
	}
	closeNow(t, f)
	f = open(t, Config{NodeID: "n1", DataDir: dir})
	var have []string
	if err := f.Store.Payments.Intents(ctx, func(i store.Intent) bool {
		have = append(have, fmt.Sprint(i.Attempt == second, string(i.Data), i.Age >= 0 && i.Age < time.Hour))
		return true
	}); err != nil || strings.Join(have, ";") != "true2true" {
		t.Errorf("after a restart: %q, %v", have, err)
	}
	if third := intend("1"); third <= second {
		t.Errorf("attempts %d, %d, %d", first, second, third)
	}
}

// TestAnAttemptThatHasEndedStoresNothing, and one that stored something before is found, whoever asks and however often, without
// the help of the duplicate window.
func TestAnAttemptThatHasEndedStoresNothing(t *testing.T) {
	t.Parallel()
	f, ctx := open(t, Config{NodeID: "n1", DataDir: t.TempDir(), GiftRetry: time.Second}), testContext(t)
	event := protocol.AppendGift(nil, protocol.Gift{User: protocol.User{ID: "ann"}, Gift: "rose", Count: 1})
	pay := func(attempt uint64, id string) (protocol.Receipt, error) {
		return f.Store.Payments.StorePaidGift(ctx, "demo", "ann", id, event, protocol.Payment{Attempt: attempt, Charged: 7, Ref: "r-1"})
	}
	end := func(attempt, from uint64) uint64 {
		t.Helper()
		seq, err := f.Store.Payments.EndAttempt(ctx, "demo", attempt, from, 0)
		if err != nil {
			t.Fatal(err)
		}
		return seq
	}
	for i := range 300 { // more than one reading
		if _, err := f.Store.Gifts.StoreGift(ctx, "demo", "ann", fmt.Sprint("before", i), event); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := pay(1001, "1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Store.Gifts.StoreGift(ctx, "demo", "ann", "after", event); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if seq := end(1001, 0); seq != stored.Seq {
			t.Errorf("found %d, want %d", seq, stored.Seq)
		}
		if seq := end(1002, 0); seq != 0 {
			t.Errorf("found %d of an attempt that stored nothing", seq)
		}
	}
	if _, err := pay(1002, "2"); !errors.Is(err, link.ErrRefused) {
		t.Errorf("an attempt that has ended: %v", err)
	}
	if r, err := pay(1003, "2"); err != nil || r.Duplicate {
		t.Errorf("the next attempt of the same id: %+v, %v", r, err)
	}
	if seq := end(1004, f.Store.Payments.LedgerEnd()); seq != 0 {
		t.Errorf("found %d", seq)
	}
	got, err := f.Store.Gifts.Gift(ctx, "demo", stored.Seq)
	if want := (protocol.Payment{Attempt: 1001, Charged: 7, Ref: "r-1"}); err != nil || got.Paid != want {
		t.Errorf("stored with %+v, %v", got.Paid, err)
	}
	if _, err := f.Store.Payments.EndAttempt(ctx, "demo", 1005, 0, 30*24*time.Hour); err == nil || !strings.Contains(err.Error(), "too old") {
		t.Errorf("older than the ledger remembers: %v", err)
	}
	page, err := f.Store.Gifts.Gifts(ctx, "demo", 0, 1000)
	if err != nil || len(page) != 303 {
		t.Errorf("%d gifts in the room, %v", len(page), err)
	}
}
