package payment

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"liveroom/internal/hook"
	"liveroom/internal/trace"
)

// work is what is left to do for an intent.
type work struct {
	noted
	do    deed
	seq   uint64        // of a gift to confirm
	age   time.Duration // of an intent that the sweep found
	swept bool          // found by the sweep
}

type deed uint8

const (
	forgetIt  deed = iota // the platform holds nothing for it
	cancelIt              // no gift of it is or will be stored
	confirmIt             // its gift is stored
	decideIt              // nobody knows
)

const (
	// settlers is how many intents a node settles at a time.
	settlers = 16
	// settleWithin bounds one of them; what is not done then is found again by the sweep.
	settleWithin = 10 * time.Second
	// sweepEvery is how often a node looks for intents that nobody works on.
	sweepEvery = time.Second
	// ownAge is how old one must be that this node made and does not know any more, and otherAge one of another node, which
	// may work on it. A gift's whole way takes some seconds at most.
	ownAge   = 2 * time.Second
	otherAge = 10 * time.Second
	// sweepMost bounds what one look reads.
	sweepMost = 1 << 14
)

// Run settles until ctx ends. What is left then is on disk.
func (t *Till) Run(ctx context.Context) {
	var all sync.WaitGroup
	for range settlers {
		all.Go(func() { t.settleAll(ctx) })
	}
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			t.sweep(ctx)
		case <-ctx.Done():
		}
	}
	all.Wait()
}

func (t *Till) settleAll(ctx context.Context) {
	for {
		select {
		case w := <-t.queue:
			within, cancel := context.WithTimeout(ctx, settleWithin)
			t.settle(within, w)
			cancel()
		case <-ctx.Done():
			return // what waits is on disk
		}
	}
}

// later hands work out. Where nobody has time for it the sweep finds it.
func (t *Till) later(w work) {
	select {
	case t.queue <- w:
	default:
		t.letGo(w.Attempt)
	}
}

// settle does what is left for an intent.
func (t *Till) settle(ctx context.Context, w work) {
	ctx = trace.Resume(ctx, w.Trace)
	err := t.finish(ctx, w)
	if err != nil && ctx.Err() == nil {
		t.cfg.Log.WarnContext(ctx, "a gift is not settled yet", "room", w.Room, "attempt", w.Attempt, "err", err)
	}
	t.mu.Lock()
	delete(t.held, w.Attempt)
	if err == nil {
		delete(t.wait, w.Attempt)
	} else {
		t.wait[w.Attempt] = t.wait[w.Attempt].longer(time.Now())
	}
	t.mu.Unlock()
}

func (t *Till) finish(ctx context.Context, w work) error {
	if w.do == decideIt {
		seq, err := t.cfg.Ledger.EndAttempt(ctx, w.Room, w.Attempt, w.From, w.age)
		if err != nil {
			return err
		}
		if w.do, w.seq = cancelIt, seq; seq > 0 {
			w.do = confirmIt
		}
	}
	kind := Cancel
	if w.do == confirmIt {
		kind, w.Seq = Confirm, w.seq
	}
	if w.do != forgetIt {
		if err := t.cfg.Platform.Call(ctx, hook.Call{ID: callID(kind, w.Attempt), Type: kind, Data: w.Data, Repeat: true}, &hook.Done{}); err != nil {
			return err
		}
	}
	if err := t.cfg.Ledger.DropIntent(ctx, w.Attempt); err != nil {
		return err
	}
	t.cfg.Metrics.settled(w)
	return nil
}

// pause is the rest before an intent that could not be settled is tried again.
type pause struct {
	length time.Duration
	until  time.Time
}

const longestPause = time.Minute

func (p pause) longer(now time.Time) pause {
	length := min(max(time.Second, 2*p.length), longestPause)
	return pause{length, now.Add(length)}
}

// sweep hands out the intents that nobody works on: those of nodes that died, and what could not be settled at once.
func (t *Till) sweep(ctx context.Context) {
	var seen []Intent
	err := t.cfg.Ledger.Intents(ctx, func(i Intent) bool {
		seen = append(seen, i)
		return len(seen) < sweepMost
	})
	if err != nil {
		return // the store's absence is told by others
	}
	t.cfg.Metrics.unsettled(seen)
	if t.cfg.Platform.Err() != nil {
		return // it is pinged, and told when it is back
	}
	now := time.Now()
	for _, i := range seen {
		w := work{do: decideIt, age: i.Age, swept: true}
		if err := json.Unmarshal(i.Data, &w.noted); err != nil {
			t.cfg.Log.Error("an intent can't be read", "attempt", i.Attempt, "err", err)
			continue
		}
		w.Attempt = i.Attempt
		least := otherAge
		if w.Node == t.cfg.Node {
			least = ownAge
		}
		if i.Age >= least && t.claim(w.Attempt, now) {
			t.later(w)
		}
	}
	t.forget(seen)
}

// claim holds an attempt for this node's settlers, unless one has it or it rests.
func (t *Till) claim(attempt uint64, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, held := t.held[attempt]; held || now.Before(t.wait[attempt].until) {
		return false
	}
	t.held[attempt] = struct{}{}
	return true
}

// forget drops the pauses of what is not there any more.
func (t *Till) forget(seen []Intent) {
	there := make(map[uint64]bool, len(seen))
	for _, i := range seen {
		there[i.Attempt] = true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for attempt := range t.wait {
		if !there[attempt] {
			delete(t.wait, attempt)
		}
	}
}
