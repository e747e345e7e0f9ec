package payment

import (
	"context"
	"errors"
	"fmt"

	"liveroom/internal/hook"
	"liveroom/protocol"
	"liveroom/room"
)

// Trial asks a platform's hook what it will be asked, and what it must refuse, and tells what is wrong with the answers.
type Trial struct {
	Platform Platform // signed as it will be
	Forged   Platform // signed by a secret that the platform does not know
	Stale    Platform // signed an hour ago
	User     string   // who pays for the sample
	Gift     protocol.CatalogueGift
	ID       string // of the sample, another one each time
	Attempt  uint64 // likewise, growing
	Pay      bool   // whether it is confirmed, so that the price is gone
	// Tell is told of each step, with what is wrong; nil: nothing.
	Tell func(step string, wrong error)
}

// Run takes all steps and reports whether nothing was wrong.
func (t *Trial) Run(ctx context.Context) bool {
	good := true
	tell := func(step string, wrong error) bool {
		good = good && wrong == nil
		t.Tell(step, wrong)
		return wrong == nil
	}
	if !tell("ping is answered", t.Platform.Call(ctx, hook.Call{ID: "ping_" + t.ID, Type: "ping"}, &hook.Done{})) {
		return false
	}
	tell("what an unknown secret signed is refused", refused(t.Forged.Call(ctx, hook.Call{ID: "forged_" + t.ID, Type: "ping"}, &hook.Done{})))
	tell("what was signed an hour ago is refused", refused(t.Stale.Call(ctx, hook.Call{ID: "stale_" + t.ID, Type: "ping"}, &hook.Done{})))
	first, err := t.reserve(ctx, t.Attempt)
	if !tell("gift.reserve has a verdict", err) {
		return false
	}
	if !*first.Allow {
		tell("gift.reserve of "+t.User+" is allowed", fmt.Errorf("it is refused with reason %q, text %q: name somebody who can pay with -user", first.Reason, first.Text))
		return false
	}
	tell("the same reserve again has the same verdict", t.same(ctx, first))
	tell("gift.cancel is done", t.end(ctx, Cancel, t.Attempt, 0))
	tell("and again", t.end(ctx, Cancel, t.Attempt, 0))
	tell("a reserve that comes after its cancel is refused", t.late(ctx, t.Attempt))
	tell("a cancel of what it has never heard of is done", t.end(ctx, Cancel, t.Attempt+1, 0))
	tell("and its reserve, which comes late, is refused", t.late(ctx, t.Attempt+1))
	next, err := t.reserve(ctx, t.Attempt+2)
	if err == nil && !*next.Allow {
		err = fmt.Errorf("it is refused with reason %q", next.Reason)
	}
	if !tell("the next attempt of the same key is allowed", err) {
		return false
	}
	if !t.Pay {
		tell("which is cancelled", t.end(ctx, Cancel, t.Attempt+2, 0))
		return good
	}
	const seq = 1
	tell("gift.confirm is done", t.end(ctx, Confirm, t.Attempt+2, seq))
	tell("and again", t.end(ctx, Confirm, t.Attempt+2, seq))
	tell("a late cancel of an earlier attempt changes nothing", t.end(ctx, Cancel, t.Attempt, 0))
	paid, err := t.reserve(ctx, t.Attempt+3)
	if err == nil && (!*paid.Allow || paid.Seq != seq) {
		err = fmt.Errorf(`want {"allow":true,"seq":%d}, since the key is paid for; received allow %v, seq %d`, seq, *paid.Allow, paid.Seq)
	}
	tell("a further reserve is told that the key is paid for", err)
	return good
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

// refused turns the answer to a call that must not be answered into what is wrong with it.
func refused(err error) error {
	var f *hook.Failure
	switch {
	case err == nil:
		return errors.New("it is answered: check webhook-signature and webhook-timestamp")
	case errors.As(err, &f) && f.Outcome == hook.BadStatus:
		return nil
	}
	return fmt.Errorf("want a status that is not 200, such as 401: %w", err)
}
