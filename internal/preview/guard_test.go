package preview

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/internal/edition"
	"liveroom/internal/rulebook"
	"liveroom/limit"
)

// shelf is a Book that puts sets into a gate.
type shelf struct {
	mu     sync.Mutex
	gate   *limit.Gate
	old    func(version int64) *limit.Rules
	undone []string
	at     time.Time
	to     uint64 // what the last rollback went back to
	fail   int    // calls that fail first
	ended  []rulebook.Ending
}

func (b *shelf) Current() *rulebook.Set {
	return &rulebook.Set{Story: edition.Story{Version: uint64(b.gate.Rules().Version())}}
}

func (b *shelf) WatchEnded(_ context.Context, e rulebook.Ending) { b.ended = append(b.ended, e) }

var errBroken = errors.New("the store is away")

func (b *shelf) GuardRollback(_ context.Context, version, to uint64, why string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail > 0 {
		b.fail--
		return errBroken
	}
	if b.gate.Rules().Version() != int64(version) {
		return errors.New("another version is in force")
	}
	b.gate.Swap(b.old(int64(version) + 1))
	b.undone, b.at, b.to = append(b.undone, why), time.Now(), to
	return nil
}

// seen returns what was undone so far, when last, and how many failures are left.
func (b *shelf) seen() ([]string, time.Time, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.undone), b.at, b.fail
}

// live runs a crowd on the bubble's clock.
type live struct {
	*crowd
	book  *shelf
	guard *Guard
}

func newLive(t *testing.T, set *limit.Rules, viewers int) *live { return newLiveAt(t, set, viewers, 0) }

// newLiveAt takes a recorder and a guard whose wall clock has been set since, by so much.
func newLiveAt(t *testing.T, set *limit.Rules, viewers int, since time.Duration) *live {
	c := newCrowd(t, set, 5, viewers)
	clock := limit.NewClock()
	c.gate = limit.NewGate(set, clock)
	c.rec = newRecorder("n1", clock, time.Now().Add(-since), Window, mostBytes)
	c.gate.Observe(c.rec)
	l := &live{crowd: c, book: &shelf{gate: c.gate, old: func(v int64) *limit.Rules { return rules(t, v, nil) }}}
	l.guard = NewGuard(GuardConfig{Source: l.traffic, Book: l.book, Log: slog.New(slog.DiscardHandler), Now: c.rec.Now})
	return l
}

// guarded runs f in a bubble, beside a guard that watches a crowd under set.
func guarded(t *testing.T, set *limit.Rules, viewers int, f func(*testing.T, *live)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var guard sync.WaitGroup
		defer guard.Wait()
		defer stop()
		l := newLive(t, set, viewers)
		guard.Go(func() { _ = l.guard.Run(ctx) })
		f(t, l)
	})
}

func (l *live) traffic(_ context.Context, from, to time.Time) (*Recording, error) {
	return l.rec.Between(from, to), nil
}

// talk lets each viewer say something every four seconds, in real time.
func (l *live) talk(length time.Duration) {
	for end := time.Now().Add(length); time.Now().Before(end); {
		for i := range l.viewers {
			if i%40 == 0 {
				time.Sleep(4 * time.Second / time.Duration(len(l.viewers)/40))
				l.now = l.gate.Now()
			}
			l.ask(l.viewers[i], nil, limit.Danmaku, 1, "demo")
		}
	}
}

func (l *live) publish(set *limit.Rules) { l.publishBeside(l.gate.Rules(), set) }

// publishBeside publishes a set that is compared with what was in force before others that have not proved themselves.
func (l *live) publishBeside(base, set *limit.Rules) {
	l.gate.Swap(set)
	l.guard.Watch(base, set, l.rec.Now())
}

// oneDigitTooLow is the article's mistake: 20 danmaku in 30 s become 2, so that who speaks every four seconds, as
// everybody here does, is refused.
func oneDigitTooLow(t testing.TB) func(*limit.Spec) {
	return func(s *limit.Spec) {
		r := rule(t, s, "danmaku-user")
		r.Rate, r.Burst = 2, 2
	}
}

// TestAThresholdOneDigitTooLow tells the article's story with another end: the preview asks for an override, and the guard
// has the set undone within a minute when somebody insists.
func TestAThresholdOneDigitTooLow(t *testing.T) {
	guarded(t, rules(t, 1, nil), 400, func(t *testing.T, l *live) {
		l.talk(time.Minute)

		bad := rules(t, 2, oneDigitTooLow(t))
		report := Replay(l.rec.snapshot(), l.gate.Rules(), bad)
		judged := report.Judge()
		if !judged.Override || len(judged.Reasons) < 2 {
			t.Fatalf("published without override: %+v", judged)
		}
		if p := report.Proposed.Refused; p.Users.Share < 0.9 || p.Messages.Share < 0.5 || report.Today.Refused.Messages.Count != 0 {
			t.Fatalf("today %+v, proposed %+v", report.Today.Refused, p)
		}
		if len(report.Rules) != 1 || report.Rules[0].Name != "danmaku-user" || report.Rules[0].Scope != "user" {
			t.Fatalf("rules: %+v", report.Rules)
		}

		forced := time.Now()
		l.publish(bad)
		l.talk(time.Minute)
		undone, at, _ := l.book.seen()
		if len(undone) != 1 {
			t.Fatalf("undone: %v; state %+v", undone, l.guard.Watching())
		}
		if took := at.Sub(forced); took > time.Minute {
			t.Errorf("undone after %v", took)
		} else {
			t.Logf("undone %v after its publish: %s", took, undone[0])
		}
		if w := l.guard.Watching(); w.State != StateRolledBack || w.Version != 2 || !strings.Contains(w.Why, "version 2 refused") {
			t.Errorf("state %+v", w)
		}
		if l.gate.Rules().Version() != 3 {
			t.Errorf("in force: %d", l.gate.Rules().Version())
		}
	})
}

// TestGuardSeesABadSetUnderAnother: a bad set on top of a bad one refuses nobody more than that; both are undone, back to
// what was in force before the first.
func TestGuardSeesABadSetUnderAnother(t *testing.T) {
	guarded(t, rules(t, 1, nil), 400, func(t *testing.T, l *live) {
		l.talk(20 * time.Second)
		base := l.gate.Rules()
		l.publish(rules(t, 2, oneDigitTooLow(t)))
		l.talk(3 * time.Second)
		l.publishBeside(base, rules(t, 3, oneDigitTooLow(t)))
		l.talk(time.Minute)
		if undone, _, _ := l.book.seen(); len(undone) != 1 || l.book.to != 1 {
			t.Fatalf("undone %v, back to %d; state %+v", undone, l.book.to, l.guard.Watching())
		}
	})
}

func TestGuardKeepsWhatRefusesNobodyMore(t *testing.T) {
	guarded(t, rules(t, 1, oneDigitTooLow(t)), 400, func(t *testing.T, l *live) {
		l.talk(40 * time.Second)
		l.publish(rules(t, 2, oneDigitTooLow(t))) // as bad as the one before
		if w := l.guard.Watching(); w.State != StateWaiting || w.Version != 2 || w.Until.Sub(w.Since) != time.Minute {
			t.Errorf("at first: %+v", w)
		}
		l.talk(30 * time.Second)
		if w := l.guard.Watching(); w.State != StateWithin || w.Users != 400 || w.Refused != w.WouldRefuse || w.Refused < 300 {
			t.Errorf("half way: %+v", w)
		}
		l.talk(40 * time.Second)
		undone, _, _ := l.book.seen()
		if w := l.guard.Watching(); w.State != StateKept || len(undone) != 0 {
			t.Errorf("in the end: %+v, undone %v", w, undone)
		}
	})
}

// TestGuardSeesRefusedGiftsAmongMuchChat: a set that refuses every gift is undone, though those who give are few among
// those who chat.
func TestGuardSeesRefusedGiftsAmongMuchChat(t *testing.T) {
	guarded(t, rules(t, 1, nil), 1200, func(t *testing.T, l *live) {
		give := func() {
			for i := range 40 {
				l.ask(l.viewers[i], nil, limit.Gift, 1, "demo")
			}
		}
		l.talk(8 * time.Second)
		give()
		l.publish(rules(t, 2, func(s *limit.Spec) {
			r := rule(t, s, "gift-user")
			r.Rate, r.Burst = 0, 1
		}))
		for range 3 {
			l.talk(8 * time.Second)
			give()
		}
		l.talk(8 * time.Second)
		undone, _, _ := l.book.seen()
		if len(undone) != 1 || !strings.Contains(undone[0], "40 users gift") {
			t.Errorf("undone %v, %+v", undone, l.guard.Watching())
		}
	})
}

func TestGuardWaitsForTraffic(t *testing.T) {
	guarded(t, rules(t, 1, nil), 400, func(t *testing.T, l *live) {
		l.publish(rules(t, 2, oneDigitTooLow(t)))
		all := l.viewers
		l.viewers = all[:9] // one fewer than there must be
		for range 20 {
			time.Sleep(time.Second)
			l.now = l.gate.Now()
			for _, v := range l.viewers {
				l.ask(v, nil, limit.Danmaku, 1, "demo")
			}
		}
		undone, _, _ := l.book.seen()
		if w := l.guard.Watching(); w.State != StateWaiting || w.Users != 9 || len(undone) != 0 {
			t.Fatalf("with nine users: %+v", w)
		}
		l.viewers = all
		l.talk(30 * time.Second)
		if undone, _, _ = l.book.seen(); len(undone) != 1 {
			t.Fatalf("with all: %+v", l.guard.Watching())
		}
	})
}

// A watch that saw too little to judge by says so, and not that all was well.
func TestGuardSaysWhenItCouldNotJudge(t *testing.T) {
	guarded(t, rules(t, 1, nil), 400, func(t *testing.T, l *live) {
		l.publish(rules(t, 2, oneDigitTooLow(t)))
		for range 70 {
			time.Sleep(time.Second)
			l.now = l.gate.Now()
			for _, v := range l.viewers[:9] { // one fewer than there must be
				l.ask(v, nil, limit.Danmaku, 1, "demo")
			}
		}
		synctest.Wait()
		if w := l.guard.Watching(); w.State != StateUnjudged || w.Users != 9 || !strings.Contains(w.Why, "could not judge version 2: 9 users") {
			t.Fatalf("with nine users: %+v", w)
		}
		if ended := l.book.ended; len(ended) != 1 || ended[0].End != StateUnjudged {
			t.Fatalf("ended: %+v", ended)
		}
	})
}

func TestGuardTriesAgainWhenTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var guard sync.WaitGroup
		defer guard.Wait()
		defer stop()
		l := newLive(t, rules(t, 1, nil), 400)
		l.book.fail = 2
		guard.Go(func() { _ = l.guard.Run(ctx) })
		l.talk(20 * time.Second)
		l.publish(rules(t, 2, oneDigitTooLow(t)))
		l.talk(time.Minute)
		if undone, _, left := l.book.seen(); len(undone) != 1 || left != 0 {
			t.Fatalf("undone %v, failures left %d, state %+v", undone, left, l.guard.Watching())
		}
	})
}

// TestAClockThatIsSetHidesNothing: a wall clock that was set since the start keeps the guard from nothing.
func TestAClockThatIsSetHidesNothing(t *testing.T) {
	for _, since := range []time.Duration{time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			var guard sync.WaitGroup
			defer guard.Wait()
			defer stop()
			l := newLiveAt(t, rules(t, 1, nil), 400, since)
			guard.Go(func() { _ = l.guard.Run(ctx) })
			l.talk(time.Minute)
			l.publish(rules(t, 2, oneDigitTooLow(t)))
			if left := l.guard.Watching().LeftMS; left != time.Minute.Milliseconds() {
				t.Errorf("clock set by %v: %d ms left of a minute", since, left)
			}
			l.talk(50 * time.Second)
			if undone, _, _ := l.book.seen(); len(undone) != 1 {
				t.Errorf("clock set by %v: undone %v, %+v", since, undone, l.guard.Watching())
			}
		})
	}
}

// TestNodesWhoseClocksDifferTellOneTime: what another node heard is told by the clock of the one that asks.
func TestNodesWhoseClocksDifferTellOneTime(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			here, there := newLive(t, rules(t, 1, nil), 40), newLiveAt(t, rules(t, 1, nil), 40, -ahead)
			there.rec.node = "n2"
			here.talk(4 * time.Second)
			there.talk(4 * time.Second)
			time.Sleep(time.Millisecond) // each request of a crowd takes a nanosecond that the clock has not seen
			now := here.rec.Now()
			from, to := now.Add(-6*time.Second), now.Add(time.Second)
			own, other := here.rec.Between(from, to), there.rec.BetweenAt(from, to, now)
			if d := time.Duration(other.end() - own.end()).Abs(); d > 10*time.Millisecond {
				t.Fatalf("clock ahead by %v: the other's ends %v off", ahead, d)
			}
			both := Merge(own, other)
			a, _ := own.requests()
			b, _ := other.requests()
			if sum, _ := both.requests(); a == 0 || b == 0 || sum != a+b || both.Span > int64(7*time.Second) {
				t.Errorf("clock ahead by %v: %d and %d requests become %d in %v", ahead, a, b, sum, time.Duration(both.Span))
			}
		})
	}
}
