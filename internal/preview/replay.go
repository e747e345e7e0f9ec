package preview

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"liveroom/limit"
)

// The two sides of a comparison.
const (
	today = iota
	proposed
	sides
)

// comparison asks two gates the same questions. It is fed one recording after the other and belongs to one goroutine.
type comparison struct {
	sides [sides]*side
	base  int64 // Unix ns of instant 0 of both
	fedTo int64 // Unix ns up to which traffic was fed
	count int64 // Unix ns from which on it is counted
	level uint32
	users map[string]*tally
	load  int64  // requests of users that are not sampled, counted
	turns []turn // scratch
	rand  *rand.Rand
}

// turn is when a record, or one request of a load, is played.
type turn struct {
	at int64
	of *record
}

// tally is what one sampled user met.
type tally struct {
	hash   uint64
	all    counts
	lines  []lineCounts
	attrs  string
	traits [sides]*limit.Traits     // of attrs; one for each side, whose rules ask other things
	frames map[uint32][sides]ruling // by connection: what the gates said to a frame whose message has not been seen yet
}

// ruling is what a gate said.
type ruling struct {
	verdict limit.Verdict
	rule    string
	scope   limit.Scope
}

// counts are messages of one user: how many, and what of them each side refused and degraded.
type counts struct {
	n   int64
	met [sides][outcomes]int64
}

// The outcomes that are told apart.
const (
	refused = iota
	degraded
	outcomes
)

// line is a row of a report: an action, or a rule with its scope.
type line struct {
	name  string
	rule  bool
	scope limit.Scope
}

type lineCounts struct {
	line
	counts
}

// newComparison begins at an instant of the wall clock, in Unix ns, with full buckets.
func newComparison(a, b *limit.Rules, base, count int64) *comparison {
	return &comparison{sides: [sides]*side{newSide(a), newSide(b)}, base: base, fedTo: base, count: count, users: map[string]*tally{},
		rand: rand.New(rand.NewPCG(1, 1))} // the same traffic gives the same report
}

// feed plays what of rec is later than what was fed before, step by step.
func (c *comparison) feed(rec *Recording) {
	rec = rec.thinned(c.level)
	c.level = rec.Level
	tallies := make([]*tally, len(rec.Users))
	step := int64(stepOf(rec.Level))
	for from := 0; from < len(rec.records); {
		c.turns = c.turns[:0]
		end := int64(rec.records[from].at)/step*step + step
		for ; from < len(rec.records) && int64(rec.records[from].at) < end; from++ {
			c.take(&rec.records[from], step)
		}
		slices.SortStableFunc(c.turns, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
		for _, t := range c.turns {
			if rec.Base+int64(t.of.at) >= c.fedTo {
				c.play(rec, tallies, t)
			}
		}
	}
	c.fedTo = max(c.fedTo, rec.end())
}

// take gives a record its turn. The requests of a load come at random instants of their step, as those of a crowd do: evenly spread
// ones would leave whoever comes between them too few tokens.
func (c *comparison) take(e *record, step int64) {
	if e.user != 0 {
		c.turns = append(c.turns, turn{int64(e.at), e})
		return
	}
	for range e.n {
		c.turns = append(c.turns, turn{int64(e.at) + c.rand.Int64N(step), e})
	}
}

func (c *comparison) play(rec *Recording, tallies []*tally, t turn) {
	e, k := t.of, &rec.Kinds[t.of.kind]
	at, counted := limit.Instant(rec.Base+t.at-c.base), rec.Base+t.at >= c.count
	if e.user == 0 {
		if counted {
			c.load++
		}
		for _, s := range c.sides {
			s.load(at, k, float64(e.cost)/float64(e.n), e.audience)
		}
		return
	}
	u := &rec.Users[e.user]
	if tallies[e.user] == nil {
		tallies[e.user] = c.tally(u.Name)
	}
	who := tallies[e.user]
	if who.attrs != u.Attrs {
		who.attrs = u.Attrs
		for i := range who.traits {
			who.traits[i] = limit.NewTraits(u.Attrs)
		}
	}
	said := c.ask(at, e, k, u, who)
	switch {
	case k.Action == limit.Frame && !k.Refused: // counted with the message in it
		if who.frames == nil {
			who.frames = map[uint32][sides]ruling{}
		}
		who.frames[e.conn] = said
	case counted:
		who.note(k, &said)
	}
}

// ask asks both sides about a sampled user's request; of a frame that a side has refused it is not asked about the message.
func (c *comparison) ask(at limit.Instant, e *record, k *kind, u *user, who *tally) (said [sides]ruling) {
	frame := who.frames[e.conn]
	delete(who.frames, e.conn)
	q := limit.Request{
		Action: k.Action, Route: k.Route, Cost: int64(e.cost), Role: k.Role, Room: k.Room, User: u.Name, Addr: u.Addr, Audience: int(e.audience),
	}
	for i, s := range c.sides {
		d := limit.Decision{Verdict: frame[i].verdict, Rule: frame[i].rule, Scope: frame[i].scope}
		q.Traits = who.traits[i]
		if d.Verdict != limit.Reject || k.Action == limit.Frame {
			d = s.ask(at, &q, k, u.Name, e.conn)
		}
		s.pass(k).measure(&q, &d)
		said[i] = ruling{d.Verdict, d.Rule, d.Scope}
	}
	return said
}

func (c *comparison) tally(name string) *tally {
	t := c.users[name]
	if t == nil {
		t = &tally{hash: xxhash.Sum64String(name)}
		c.users[name] = t
	}
	return t
}

// note counts one message: of the user, of its action, and at the rules that refused or degraded it.
func (t *tally) note(k *kind, said *[sides]ruling) {
	action := k.Action.String()
	if k.Action == limit.API && k.Route != "" {
		action = "api:" + k.Route
	}
	t.all.n++
	t.line(line{name: action}).n++
	for i, r := range said {
		outcome := refused
		switch r.verdict {
		case limit.Degrade:
			outcome = degraded
		case limit.Reject:
		default:
			continue
		}
		t.all.met[i][outcome]++
		t.line(line{name: action}).met[i][outcome]++
		t.line(line{r.rule, true, r.scope}).met[i][outcome]++
	}
}

func (t *tally) line(l line) *counts {
	for i := range t.lines {
		if t.lines[i].line == l {
			return &t.lines[i].counts
		}
	}
	t.lines = append(t.lines, lineCounts{line: l})
	return &t.lines[len(t.lines)-1].counts
}

// warmUp is how much of a recording that begins amid traffic is played before it is counted, so that the buckets, which
// start full, have come down to where traffic holds them: a tenth of it, at most warmUpMost.
const warmUpMost = 30 * time.Second

func warmUp(rec *Recording) int64 {
	if !rec.Cut {
		return 0
	}
	return min(rec.Span/10, int64(warmUpMost))
}

// Replay plays a recording through two gates, one with today's rules and one with the proposed. Neither set is changed.
func Replay(rec *Recording, todays, proposal *limit.Rules) *Report {
	c := newComparison(todays, proposal, rec.Base, rec.Base+warmUp(rec))
	c.feed(rec)
	return c.report(rec, todays, proposal)
}
