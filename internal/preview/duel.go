package preview

import (
	"cmp"
	"slices"
	"time"

	"liveroom/limit"
)

// The two worlds of a duel.
const (
	today = iota
	proposed
	worlds
)

// duel asks two gates the same questions. It is fed one recording after the other and belongs to one goroutine.
type duel struct {
	worlds [worlds]*world
	base   int64 // Unix ns of instant 0 of both
	fedTo  int64 // Unix ns up to which traffic was fed
	count  int64 // Unix ns from which on it is counted
	level  uint32
	people map[string]*soul
	lines  lines
	rest   int64 // requests of users that are not sampled, counted
	press  []pressed
}

// soul is one sampled user.
type soul struct {
	hash   uint64
	selves [worlds]*selves
	frames map[connKey]framed
	stat   stat
	byLine []lineStat
}

// framed is what the gates said to a frame whose message has not been seen yet.
type framed struct{ by [worlds]ruling }

// ruling is what a gate said.
type ruling struct {
	verdict limit.Verdict
	rule    string
	scope   limit.Scope
}

// pressed is one request of the unsampled load, within its step.
type pressed struct {
	at   int64
	load *load
}

// newDuel begins at an instant of the wall clock, in Unix ns, with full buckets.
func newDuel(a, b *limit.Rules, base, count int64) *duel {
	return &duel{
		worlds: [worlds]*world{newWorld(a), newWorld(b)}, base: base, fedTo: base, count: count,
		people: map[string]*soul{}, lines: lines{index: map[lineKey]uint32{}},
	}
}

// feed plays what of rec is later than what was fed before.
func (d *duel) feed(rec *Recording) {
	if rec.level < d.level {
		rec = rec.thinned(d.level)
	}
	d.level = rec.level
	souls := make([]*soul, len(rec.users))
	for _, w := range d.worlds {
		w.bind(rec.kinds)
	}
	next := 0
	for i := 0; i < len(rec.rest); {
		from := i
		for i < len(rec.rest) && rec.rest[i].at == rec.rest[from].at {
			i++
		}
		d.spread(rec.rest[from:i])
		for _, p := range d.press {
			for ; next < len(rec.events) && int64(rec.events[next].at) <= p.at; next++ {
				d.event(rec, souls, &rec.events[next])
			}
			d.pressOne(rec, p)
		}
	}
	for ; next < len(rec.events); next++ {
		d.event(rec, souls, &rec.events[next])
	}
	d.fedTo = max(d.fedTo, rec.base+rec.span)
}

// spread lays the requests of one step evenly over it.
func (d *duel) spread(loads []load) {
	d.press = d.press[:0]
	for i := range loads {
		l := &loads[i]
		for j := range int64(l.n) {
			d.press = append(d.press, pressed{at: l.at + (2*j+1)*int64(step)/(2*int64(l.n)), load: l})
		}
	}
	slices.SortStableFunc(d.press, func(a, b pressed) int { return cmp.Compare(a.at, b.at) })
}

func (d *duel) pressOne(rec *Recording, p pressed) {
	if rec.base+p.load.at < d.fedTo {
		return
	}
	k := &rec.kinds[p.load.kind]
	if rec.base+p.at >= d.count && k.Action != limit.Frame {
		d.rest++
	}
	for _, w := range d.worlds {
		w.press(d.instant(rec, p.at), k, w.bound[p.load.kind], float64(p.load.cost)/float64(p.load.n), p.load.audience)
	}
}

func (d *duel) instant(rec *Recording, at int64) limit.Instant {
	return limit.Instant(rec.base + at - d.base)
}

func (d *duel) event(rec *Recording, souls []*soul, e *event) {
	if rec.base+int64(e.at) < d.fedTo {
		return
	}
	k, u := &rec.kinds[e.kind], &rec.users[e.user]
	who := souls[e.user]
	if who == nil {
		who = d.soul(u)
		souls[e.user] = who
	}
	q := limit.Request{
		Action: k.Action, Route: k.Route, Cost: int64(e.cost), Role: k.Role, Room: k.Room, Addr: u.Addr,
		Audience: int(e.audience),
	}
	if !k.Unnamed {
		q.User = u.Name
	}
	conn := connKey{node: rec.nodes[k.Node], ordinal: e.conn}
	before, hadFrame := who.frames[conn]
	if hadFrame {
		delete(who.frames, conn)
	}
	var by [worlds]ruling
	for i, w := range d.worlds {
		if before.by[i].verdict == limit.Reject && k.Action != limit.Frame {
			by[i] = before.by[i]
			w.bound[e.kind].measure(q.Cost, false, 0)
			continue
		}
		dec := w.ask(d.instant(rec, int64(e.at)), &q, k, who.selves[i], conn)
		w.bound[e.kind].rule(q.Cost, &dec)
		by[i] = ruling{dec.Verdict, dec.Rule, dec.Scope}
	}
	if k.Action == limit.Frame && limit.Verdict(e.verdict) != limit.Reject {
		who.frames[conn] = framed{by}
		return
	}
	if rec.base+int64(e.at) >= d.count {
		d.note(who, k, &by)
	}
}

// rule measures what the personal limits let through, by a gate's decision.
func (p passages) rule(asked int64, dec *limit.Decision) {
	passed, cost := true, asked
	if dec.Scope < limit.ScopeRoom {
		switch dec.Verdict {
		case limit.Reject:
			passed, cost = false, 0
		case limit.Degrade:
			cost = dec.Counted
		}
	}
	p.measure(asked, passed, cost)
}

func (d *duel) soul(u *user) *soul {
	s := d.people[u.Name]
	if s == nil {
		s = &soul{hash: u.hash(), selves: [worlds]*selves{newSelves(), newSelves()}, frames: map[connKey]framed{}}
		d.people[u.Name] = s
	}
	return s
}

// note counts one message.
func (d *duel) note(who *soul, k *kind, by *[worlds]ruling) {
	who.stat.add(by, [worlds]bool{true, true})
	who.line(d.lines.of(lineKey{name: k.action()})).add(by, [worlds]bool{true, true})
	for i := range by {
		if r := &by[i]; r.verdict == limit.Reject || r.verdict == limit.Degrade {
			only := [worlds]bool{}
			only[i] = true
			who.line(d.lines.of(lineKey{rule: true, name: r.rule, scope: r.scope})).add(by, only)
		}
	}
}

func (k *kind) action() string {
	if k.Action == limit.API && k.Route != "" {
		return "api:" + k.Route
	}
	return k.Action.String()
}

// stat counts messages of one user.
type stat struct {
	n        int64
	refused  [worlds]int64
	degraded [worlds]int64
}

func (s *stat) add(by *[worlds]ruling, in [worlds]bool) {
	s.n++
	for i := range by {
		switch {
		case !in[i]:
		case by[i].verdict == limit.Reject:
			s.refused[i]++
		case by[i].verdict == limit.Degrade:
			s.degraded[i]++
		}
	}
}

// lines numbers the rows of a report: actions and rules.
type lines struct {
	index map[lineKey]uint32
	keys  []lineKey
}

type lineKey struct {
	rule  bool
	name  string
	scope limit.Scope
}

type lineStat struct {
	line uint32
	stat
}

func (l *lines) of(key lineKey) uint32 { return intern(l.index, &l.keys, key, key) }

func (s *soul) line(i uint32) *stat {
	for j := range s.byLine {
		if s.byLine[j].line == i {
			return &s.byLine[j].stat
		}
	}
	s.byLine = append(s.byLine, lineStat{line: i})
	return &s.byLine[len(s.byLine)-1].stat
}

// warmUp is how much of a recording that begins amid traffic is played before it is counted, so that the buckets, which
// start full, have come down to where traffic holds them: a tenth of it, at most warmUpMost.
const warmUpMost = 30 * time.Second

func warmUp(rec *Recording) int64 {
	if !rec.cut {
		return 0
	}
	return min(rec.span/10, int64(warmUpMost))
}

// Replay plays a recording through two gates, one with today's rules and one with the proposed. Neither set is changed.
func Replay(rec *Recording, todays, proposal *limit.Rules) *Report {
	d := newDuel(todays, proposal, rec.base, rec.base+warmUp(rec))
	d.feed(rec)
	return d.report(rec, todays, proposal)
}
