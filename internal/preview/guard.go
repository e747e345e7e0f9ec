package preview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
)

// Book undoes a set. It puts version to in force again if version still is, by the store's compare-and-set; an error is
// tried again at the next check while the watch lasts. *rulebook.Book is one.
type Book interface {
	GuardRollback(ctx context.Context, version, to uint64, why string) error
}

// Source gives the traffic in [from, to): a Recorder's Between, or several nodes' merged.
type Source func(ctx context.Context, from, to time.Time) (*Recording, error)

// Source returns the traffic of this node alone.
func (r *Recorder) Source() Source {
	return func(_ context.Context, from, to time.Time) (*Recording, error) { return r.Between(from, to), nil }
}

// GuardConfig is what a Guard needs.
type GuardConfig struct {
	// Source and Book are required.
	Source Source
	Book   Book
	// Now is the clock by which Source tells its traffic, [Recorder.Now]; time.Now when nil.
	Now func() time.Time
	// Watch is how long a set is watched after its publish, 10 s to 10 min; 60 s when 0.
	Watch time.Duration
	// Every is the time between checks, 100 ms to 10 s; 2 s when 0.
	Every time.Duration
	// Share is the bound: how much larger the share of distinct users refused something may be than under the set
	// before, above 0 to 1; 0.05 when 0.
	Share float64
	// Users is the least number of sampled users who must be refused in addition, 1 to 10^6; 10 when 0.
	Users int
	// Superseded tells whether an error of Book means that somebody else has published since, so that there is nothing
	// to undo. No error does when nil.
	Superseded func(error) bool
	// InForce is the version in force on this node: a watch over an older one is over. Nil: only a rollback finds that out.
	InForce func() int64
	// Ended is told how each watch ended, and may wait. Nil: nobody is.
	Ended func(context.Context, Watch)
	// Log gets one line for each end of a watch; slog.Default when nil.
	Log *slog.Logger
}

func (c GuardConfig) withDefaults() (GuardConfig, error) {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&c.Watch, time.Minute)
	set(&c.Every, 2*time.Second)
	if c.Share == 0 {
		c.Share = moreUsers
	}
	if c.Users == 0 {
		c.Users = 10
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Superseded == nil {
		c.Superseded = func(error) bool { return false }
	}
	if c.InForce == nil {
		c.InForce = func() int64 { return 0 }
	}
	if c.Ended == nil {
		c.Ended = func(context.Context, Watch) {}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("preview: guard: "+format, args...))
		}
	}
	fault(c.Source == nil, "source: missing")
	fault(c.Book == nil, "book: missing")
	fault(c.Watch < 10*time.Second || c.Watch > 10*time.Minute, "watch: want 10s to 10m, have %v", c.Watch)
	fault(c.Every < 100*time.Millisecond || c.Every > 10*time.Second, "every: want 100ms to 10s, have %v", c.Every)
	fault(!(c.Share > 0 && c.Share <= 1), "share: want above 0 to 1, have %v", c.Share)
	fault(c.Users < 1 || c.Users > 1e6, "users: want 1 to 1000000, have %d", c.Users)
	return c, errors.Join(faults...)
}

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
	cfg  GuardConfig
	news chan watching

	// mu guards what follows; it is a leaf.
	mu    lock.Mutex[lock.Leaf]
	state Watch
	// base is what the watch under way compares with; nil when none is.
	base *limit.Rules
}

// watching is a watch under way, owned by Run.
type watching struct {
	old, new *limit.Rules
	at       time.Time
	duel     *duel
}

// watch is the state of a watch in which nothing was seen yet.
func (w *watching) watch(length time.Duration, state string) Watch {
	return Watch{State: state, Version: w.new.Version(), Previous: w.old.Version(), Since: w.at.UTC(), Until: w.at.Add(length).UTC()}
}

// NewGuard returns a Guard that does nothing until Run. The error names everything that is wrong with cfg.
func NewGuard(cfg GuardConfig) (*Guard, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Guard{cfg: cfg, news: make(chan watching, 1), state: Watch{State: StateIdle}}, nil
}

// Watch begins to watch published, which came into force in place of previous, at an instant of [GuardConfig.Now]. A watch under way ends, but
// what it compared with stays: the set that it watched has not proved itself, and a second bad set on top of a first would
// look harmless beside it. It does not block. Call it on one node, the one that published or the one that takes its watch up, for what people
// publish and roll back to, not for what the guard itself put in force.
func (g *Guard) Watch(previous, published *limit.Rules, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.base == nil {
		g.base = previous
	}
	w := watching{old: g.base, new: published, at: at}
	select {
	case <-g.news:
	default:
	}
	g.news <- w // has room: only Watch sends, under mu
	g.state = w.watch(g.cfg.Watch, StateWaiting)
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
	tick := time.NewTicker(g.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case next := <-g.news:
			if w != nil {
				g.end(ctx, w.watch(g.cfg.Watch, StateSuperseded))
			}
			w = &next
			tick.Reset(g.cfg.Every)
		case <-tick.C:
			if w != nil && g.check(ctx, w, g.cfg.Now()) {
				w = nil
			}
		}
	}
}

// settle is how long traffic of all nodes gets to be recorded before it is asked for.
const settle = 250 * time.Millisecond

// check plays what was recorded since the last time. It reports that the watch is over.
func (g *Guard) check(ctx context.Context, w *watching, now time.Time) bool {
	s := w.watch(g.cfg.Watch, StateWaiting)
	if g.cfg.InForce() > s.Version {
		s.State = StateSuperseded
		if g.publish(s, true) {
			g.end(ctx, s)
		}
		return true
	}
	err := g.play(ctx, w, now)
	beyond := false
	if w.duel != nil {
		beyond = g.judge(w.duel, &s)
	}
	if beyond {
		s.State = StateBeyond
		switch e := g.cfg.Book.GuardRollback(ctx, uint64(s.Version), uint64(s.Previous), s.Why); {
		case e == nil:
			s.State = StateRolledBack
		case g.cfg.Superseded(e):
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
		s.Why = fmt.Sprintf("could not judge version %d: %d users were seen within %v, it takes %d", s.Version, s.Users, g.cfg.Watch, g.cfg.Users)
	}
	if err != nil {
		s.Err = err.Error()
	}
	if !g.publish(s, over) && s.State != StateRolledBack {
		return false // Run takes the news, and ends this one
	}
	if over {
		g.end(ctx, s)
	}
	return over
}

func (g *Guard) end(ctx context.Context, s Watch) {
	g.log(ctx, &s)
	g.cfg.Ended(ctx, s)
}

// publish shows the state, the last one when over, unless another watch has begun.
func (g *Guard) publish(s Watch, over bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.news) > 0 {
		return false
	}
	g.state = s
	if over {
		g.base = nil
	}
	return true
}

func (g *Guard) log(ctx context.Context, s *Watch) {
	level := slog.LevelInfo
	if s.State != StateKept {
		level = slog.LevelWarn
	}
	g.cfg.Log.Log(ctx, level, "limits: the watch over a new set ended", "state", s.State, "version", s.Version, "previous", s.Previous,
		"users", s.Users, "refused", s.Refused, "would_refuse", s.WouldRefuse, "why", s.Why, "err", s.Err)
}

// play feeds the duel: first, with the old set in both worlds, the traffic before the publish, so that the buckets are
// where they were; then what came since.
func (g *Guard) play(ctx context.Context, w *watching, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Every)
	defer cancel()
	if w.duel == nil {
		from := w.at.Add(-warmUpMost)
		rec, err := g.cfg.Source(ctx, from, w.at)
		if err != nil {
			return err
		}
		d := newDuel(w.old, w.old, from.UnixNano(), w.at.UnixNano())
		d.feed(rec)
		if !d.worlds[proposed].swap(w.new, limit.Instant(w.at.UnixNano()-d.base)) {
			return fmt.Errorf("version %d is older than %d", w.new.Version(), w.old.Version())
		}
		w.duel = d
	}
	to := now.Add(-settle)
	if from := time.Unix(0, w.duel.fedTo); to.After(from) {
		rec, err := g.cfg.Source(ctx, from, to)
		if err != nil {
			return err
		}
		w.duel.feed(rec)
	}
	return nil
}

// guardZ is how many standard errors the excess must be beyond the bound. Thirty looks at the same watch would find one of
// two once in every second watch of a set right at the bound.
const guardZ = 3

// judge compares distinct users: of all actions together, and of each that enough users were seen with, since those who
// chat by the thousand would hide that every gift is refused. It is the paired difference: those refused by the new set
// alone less those by the old set alone, so that what both do alike is no noise.
func (g *Guard) judge(d *duel, s *Watch) bool {
	var all pairs
	byAction := make([]pairs, len(d.lines.keys))
	d.counted(func(u *soul) {
		all.add(&u.stat)
		for i := range u.byLine {
			byAction[u.byLine[i].line].add(&u.byLine[i].stat)
		}
	})
	s.Users, s.Refused, s.WouldRefuse = all.users, all.is, all.was
	if all.users == 0 {
		return false
	}
	if all.users >= int64(g.cfg.Users) {
		s.State = StateWithin
	}
	what := "something"
	worst, beyond := all, g.beyond(&all, d.level)
	for i, key := range d.lines.keys {
		if p := &byAction[i]; !beyond && !key.rule && p.users >= enoughUsers && g.beyond(p, d.level) {
			what, worst, beyond = key.name, *p, true
		}
	}
	if !beyond {
		return false
	}
	s.Why = fmt.Sprintf("version %d refused %d of %d users %s within %v of its publish, version %d would have refused %d; the bound is %s more",
		s.Version, worst.is, worst.users, what, time.Duration(d.fedTo-d.count).Round(time.Second), s.Previous, worst.was, percent(g.cfg.Share))
	return true
}

// pairs counts users by what the two sets did to them.
type pairs struct {
	users, is, was int64 // seen; refused something by the new set; by the old one
	newly, spared  float64
}

func (p *pairs) add(st *stat) {
	if st.n == 0 {
		return
	}
	p.users++
	was, is := st.refused[today] > 0, st.refused[proposed] > 0
	if is {
		p.is++
	}
	if was {
		p.was++
	}
	switch {
	case is && !was:
		p.newly++
	case was && !is:
		p.spared++
	}
}

// beyond reports whether the new set refuses more users than the bound allows, noise aside.
func (g *Guard) beyond(p *pairs, level uint32) bool {
	n, excess := float64(p.users), p.newly-p.spared
	spread := math.Sqrt(max(p.newly+p.spared-excess*excess/n, 0)) * math.Sqrt(1-share(level))
	return excess >= float64(g.cfg.Users) && (excess-guardZ*spread)/n > g.cfg.Share
}
