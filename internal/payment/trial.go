package payment

import (
	"context"
	"errors"
	"fmt"

	"liveroom/internal/hook"
	"liveroom/protocol"
	"liveroom/room"
)

// Trial asks a platform's hook what it will be asked of gifts.
type Trial struct {
	*hook.Trial
	User    string // who pays for the sample
	Gift    protocol.CatalogueGift
	Attempt uint64 // another one each time, growing
	Pay     bool   // whether it is confirmed, so that the price is gone
}

// Run takes all steps and reports whether nothing was wrong.
func (t *Trial) Run(ctx context.Context) bool {
	if t.Signatures(ctx) {
		t.gifts(ctx)
	}
	return t.Good()
}

func (t *Trial) gifts(ctx context.Context) {
	first, err := t.reserve(ctx, t.Attempt)
	if !t.Step("gift.reserve has a verdict", err) {
		return
	}
	if !*first.Allow {
		t.Step("gift.reserve of "+t.User+" is allowed", fmt.Errorf("it is refused with reason %q, text %q: name somebody who can pay with -user", first.Reason, first.Text))
		return
	}
	t.Step("the same reserve again has the same verdict", t.same(ctx, first))
	t.Step("gift.cancel is done", t.end(ctx, Cancel, t.Attempt, 0))
	t.Step("and again", t.end(ctx, Cancel, t.Attempt, 0))
	t.Step("a reserve that comes after its cancel is refused", t.late(ctx, t.Attempt))
	t.Step("a cancel of what it has never heard of is done", t.end(ctx, Cancel, t.Attempt+1, 0))
	t.Step("and its reserve, which comes late, is refused", t.late(ctx, t.Attempt+1))
	next, err := t.reserve(ctx, t.Attempt+2)
	if err == nil && !*next.Allow {
		err = fmt.Errorf("it is refused with reason %q", next.Reason)
	}
	if !t.Step("the next attempt of the same key is allowed", err) {
		return
	}
	if !t.Pay {
		t.Step("which is cancelled", t.end(ctx, Cancel, t.Attempt+2, 0))
		return
	}
	const seq = 1
	t.Step("gift.confirm is done", t.end(ctx, Confirm, t.Attempt+2, seq))
	t.Step("and again", t.end(ctx, Confirm, t.Attempt+2, seq))
	t.Step("a late cancel of an earlier attempt changes nothing", t.end(ctx, Cancel, t.Attempt, 0))
	paid, err := t.reserve(ctx, t.Attempt+3)
	if err == nil && (!*paid.Allow || paid.Seq != seq) {
		err = fmt.Errorf(`want {"allow":true,"seq":%d}, since the key is paid for; received allow %v, seq %d`, seq, *paid.Allow, paid.Seq)
	}
	t.Step("a further reserve is told that the key is paid for", err)
}

func (t *Trial) data(attempt uint64) Data {
	d := dataOf(&room.Sale{Room: "hook-test", ID: t.ID, Price: t.Gift.Price, Gift: protocol.Gift{User: protocol.User{ID: t.User}, Gift: t.Gift.ID, Count: 1}})
	d.Attempt = attempt
	return d
}

func (t *Trial) reserve(ctx context.Context, attempt uint64) (v Verdict, err error) {
	err = t.Platform.Call(ctx, hook.Call{ID: callID(Reserve, attempt), Type: Reserve, Data: t.data(attempt)}, &v)
	return v, err
}

func (t *Trial) same(ctx context.Context, first Verdict) error {
	again, err := t.reserve(ctx, t.Attempt)
	if err == nil && (!*again.Allow || again.Ref != first.Ref || again.Charged != first.Charged) {
		err = fmt.Errorf("the first was allow true, charged %d, ref %q; this one is allow %v, charged %d, ref %q", first.Charged, first.Ref, *again.Allow, again.Charged, again.Ref)
	}
	return err
}

func (t *Trial) late(ctx context.Context, attempt uint64) error {
	v, err := t.reserve(ctx, attempt)
	if err == nil && *v.Allow {
		err = errors.New("it is allowed, and the money would be held for ever: remember the attempt that was cancelled")
	}
	return err
}

func (t *Trial) end(ctx context.Context, kind string, attempt, seq uint64) error {
	d := t.data(attempt)
	d.Seq = seq
	return t.Platform.Call(ctx, hook.Call{ID: callID(kind, attempt), Type: kind, Data: d}, &hook.Done{})
}
