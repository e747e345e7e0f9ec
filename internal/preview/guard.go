package preview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"liveroom/internal/edition"
	"liveroom/internal/lock"
	"liveroom/internal/rulebook"
	"liveroom/limit"
)

// Book keeps the sets. *rulebook.Book is one.
type Book interface {
	// Current is the set in force on this node: a watch over an older one is over.
	Current() *rulebook.Set
	// GuardRollback puts version to in force again if version still is, by the store's compare-and-set: its error is a
	// [edition.ErrConflict] when somebody has published since. Any other is tried again at the next check while the watch lasts.
	GuardRollback(ctx context.Context, version, to uint64, why string) error
	// WatchEnded is told how each watch ended, and may wait.
	WatchEnded(ctx context.Context, e rulebook.Ending)
}

// Source gives the traffic in [from, to): a Recorder's Between, or several nodes' merged.
type Source func(ctx context.Context, from, to time.Time) (*Recording, error)

// GuardConfig is what a Guard needs; everything is required.
type GuardConfig struct {
	Source Source
	Book   Book
	Now    func() time.Time // the clock by which Source tells its traffic, [Recorder.Now]
	Log    *slog.Logger     // gets one line for each end of a watch
}

const (
	// WatchFor is how long a set is watched after its publish.
	WatchFor = time.Minute
	// checkEvery is the time between checks.
	checkEvery = 2 * time.Second
	// enoughRefused is the least number of sampled users who must be refused in addition.
	enoughRefused = 10
)

// The states of a watch.
const (
	StateIdle       = "idle"        // nothing was published yet
	StateWaiting    = "waiting"     // too little traffic so far to say anything
	StateWithin     = "within"      // within the bound so far
	StateBeyond     = "beyond"      // beyond it, and the rollback has failed so far
	StateKept       = "kept"        // the watch ended within the bound
	StateRolledBack = "rolled_back" // the guard has undone the set
	StateSuperseded = "superseded"  // somebody else has published meanwhile
	StateUnjudged   = "unjudged"    // the watch ended, and too little was seen to judge by
)

// Watch is the state of the last watch, for the admin page. Shares are of the sampled users seen since the publish.
type Watch struct {
	State    string    `json:"state"`
	Version  int64     `json:"version"`
	Previous int64     `json:"previous"`
	Since    time.Time `json:"since"`
	Until    time.Time `json:"until"`
	// LeftMS is how long it lasts yet when this is read, for whoever has another clock.
	LeftMS int64 `json:"left_ms"`
	// Users were seen; Refused and WouldRefuse of them were refused something by the new set and would have been by
	// the one before.
	Users       int64 `json:"users"`
	Refused     int64 `json:"refused"`
	WouldRefuse int64 `json:"would_refuse"`
	// Why is the reason of a rollback.
	Why string `json:"why,omitempty"`
	// Err is what the last check or rollback failed with.
	Err string `json:"err,omitempty"`
}

// Guard watches what a new set does, and has it undone.
type Guard struct {
	cfg GuardConfig
	few int // enoughRefused

	// mu guards what follows; it is a leaf.
	mu    lock.Mutex[lock.Leaf]
	state Watch
	begun []*watching // and not yet taken up by Run
}

// watching is a watch under way, owned by Run.
type watching struct {
	old, new *limit.Rules
	at       time.Time
	compared *comparison // nil before the first check that got traffic
}

// watch is the state of a watch in which nothing was seen yet.
func (w *watching) watch(state string) Watch {
	return Watch{State: state, Version: w.new.Version(), Previous: w.old.Version(), Since: w.at.UTC(), Until: w.at.Add(WatchFor).UTC()}
}

// NewGuard returns a Guard that does nothing until Run.
func NewGuard(cfg GuardConfig) *Guard {
	return &Guard{cfg: cfg, few: enoughRefused, state: Watch{State: StateIdle}}
}

// Watch begins to watch published, which came into force at an instant of GuardConfig.Now, beside base, which has proved itself. A watch
// under way ends. It does not block. Call it on one node, the one that published or the one that takes its watch up, for what people
// publish and roll back to, not for what the guard itself put in force.
func (g *Guard) Watch(base, published *limit.Rules, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := &watching{old: base, new: published, at: at}
	g.begun = append(g.begun, w)
	g.state = w.watch(StateWaiting)
}

// Watching returns the state of the watch under way, or of the last one.
func (g *Guard) Watching() Watch {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.state
	s.LeftMS = max(0, s.Until.Sub(g.cfg.Now()).Milliseconds())
	return s
}

// Run watches until ctx ends, whose error it returns.
func (g *Guard) Run(ctx context.Context) error {
	var w *watching
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		for _, next := range g.take() {
			if w != nil {
				g.end(ctx, w.watch(StateSuperseded))
			}
			w = next
		}
		if w != nil && g.check(ctx, w, g.cfg.Now()) {
			w = nil
		}
	}
}

// take returns the watches that Run has not taken up yet.
func (g *Guard) take() []*watching {
	g.mu.Lock()
	defer g.mu.Unlock()
	begun := g.begun
	g.begun = nil
	return begun
}

// settle is how long traffic of all nodes gets to be recorded before it is asked for.
const settle = 250 * time.Millisecond

// check plays what was recorded since the last time. It reports that the watch is over.
func (g *Guard) check(ctx context.Context, w *watching, now time.Time) bool {
	s := w.watch(StateWaiting)
	if int64(g.cfg.Book.Current().Version) > s.Version {
		s.State = StateSuperseded
		return g.tell(ctx, s, true)
	}
	err := g.play(ctx, w, now)
	beyond := false
	if w.compared != nil {
		beyond = g.judge(w.compared, &s)
	}
	if beyond {
		s.State = StateBeyond
		switch e := g.cfg.Book.GuardRollback(ctx, uint64(s.Version), uint64(s.Previous), s.Why); {
		case e == nil:
			s.State = StateRolledBack
		case errors.Is(e, edition.ErrConflict):
			s.State = StateSuperseded
		default:
			err = errors.Join(err, e)
		}
	}
	over := s.State == StateRolledBack || s.State == StateSuperseded || !now.Before(s.Until)
	if over && s.State == StateWithin {
		s.State = StateKept
	}
	if over && s.State == StateWaiting {
		s.State = StateUnjudged
		s.Why = fmt.Sprintf("could not judge version %d: %d users were seen within %v, it takes %d", s.Version, s.Users, WatchFor, g.few)
	}
	if err != nil {
		s.Err = err.Error()
	}
	return g.tell(ctx, s, over)
}

// tell shows the state, unless another watch has begun, and passes on whether this one is over: Run ends it if another begins.
func (g *Guard) tell(ctx context.Context, s Watch, over bool) bool {
	g.mu.Lock()
	if len(g.begun) == 0 {
		g.state = s
	} else if s.State != StateRolledBack {
		over = false
	}
	g.mu.Unlock()
	if over {
		g.end(ctx, s)
	}
	return over
}

func (g *Guard) end(ctx context.Context, s Watch) {
	level := slog.LevelInfo
	if s.State != StateKept {
		level = slog.LevelWarn
	}
	g.cfg.Log.Log(ctx, level, "limits: the watch over a new set ended", "state", s.State, "version", s.Version, "previous", s.Previous,
		"users", s.Users, "refused", s.Refused, "would_refuse", s.WouldRefuse, "why", s.Why, "err", s.Err)
	g.cfg.Book.WatchEnded(ctx, rulebook.Ending{
		Version: uint64(s.Version), End: s.State, At: time.Now().UTC(), Users: s.Users, Refused: s.Refused, WouldRefuse: s.WouldRefuse, Why: s.Why,
	})
}

// play feeds the comparison: first, with the old set on both sides, the traffic before the publish, so that the buckets are
// where they were; then what came since.
func (g *Guard) play(ctx context.Context, w *watching, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, checkEvery)
	defer cancel()
	if w.compared == nil {
		from := w.at.Add(-warmUpMost)
		rec, err := g.cfg.Source(ctx, from, w.at)
		if err != nil {
			return err
		}
		c := newComparison(w.old, w.old, from.UnixNano(), w.at.UnixNano())
		c.feed(rec)
		if !c.sides[proposed].swap(w.new, limit.Instant(w.at.UnixNano()-c.base)) {
			return fmt.Errorf("version %d is older than %d", w.new.Version(), w.old.Version())
		}
		w.compared = c
	}
	to := now.Add(-settle)
	if from := time.Unix(0, w.compared.fedTo); to.After(from) {
		rec, err := g.cfg.Source(ctx, from, to)
		if err != nil {
			return err
		}
		w.compared.feed(rec)
	}
	return nil
}

// guardZ is how many standard errors the excess must be beyond the bound. Thirty looks at the same watch would find one of
// two once in every second watch of a set right at the bound.
const guardZ = 3

// judge compares distinct users: of all actions together, and of each that enough users were seen with, since those who
// chat by the thousand would hide that every gift is refused. It is the paired difference: those refused by the new set
// alone less those by the old set alone, so that what both do alike is no noise.
func (g *Guard) judge(c *comparison, s *Watch) bool {
	all, lines := c.sum()
	s.Users, s.Refused, s.WouldRefuse = all.users, all.met[proposed][refused].users, all.met[today][refused].users
	if all.users == 0 {
		return false
	}
	if all.users >= int64(g.few) {
		s.State = StateWithin
	}
	what := "something"
	worst, beyond := &all, g.beyond(&all, c.level)
	for of, l := range lines {
		if !of.rule && l.users >= enoughUsers && g.beyond(l, c.level) && (!beyond || what != "something" && of.name < what) {
			what, worst, beyond = of.name, l, true
		}
	}
	if !beyond {
		return false
	}
	s.Why = fmt.Sprintf("version %d refused %d of %d users %s within %v of its publish, version %d would have refused %d; the bound is %s more",
		s.Version, worst.met[proposed][refused].users, worst.users, what, time.Duration(c.fedTo-c.count).Round(time.Second), s.Previous, worst.met[today][refused].users, percent(moreUsers))
	return true
}

// beyond reports whether the new set refuses more users than the bound allows, noise aside.
func (g *Guard) beyond(p *sums, level uint32) bool {
	n, newly, spared := float64(p.users), float64(p.newly), float64(p.spared)
	excess := newly - spared
	spread := math.Sqrt(max(newly+spared-excess*excess/n, 0)) * math.Sqrt(1-share(level))
	return excess >= float64(g.few) && (excess-guardZ*spread)/n > moreUsers
}
