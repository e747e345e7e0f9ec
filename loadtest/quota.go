package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"
)

// quotaBound is the room's quota where none was stated, and userBound that of one user, as rules/quota.yaml has it.
var (
	quotaBound = bound{rate: 400, burst: 400}
	userBound  = bound{rate: 20, burst: 5}
)

// userRooms begins the names of the rooms in which userBound holds.
const userRooms = "quota-user-"

// quotaRules is the rule set with the bound put in.
func quotaRules(o *options) []byte {
	if !o.bound.stated() {
		o.bound = quotaBound
	}
	return []byte(strings.NewReplacer("RATE", fmt.Sprint(o.bound.rate), "BURST", fmt.Sprint(o.bound.burst)).Replace(string(quotaTemplate)))
}

// quotaRun is the scenario at work.
type quotaRun struct {
	*bench
	teams   teams
	size    int      // viewers of each node
	crowds  []*crowd // all that ever came; owned by the scenario's goroutine, and by the stages' acts while they run
	stages  []stage
	mishaps []error // of the acts
}

// quota asks whether one quota holds over several nodes, whatever is done to them, and what it costs: every admitted
// danmaku's instant of admission, of all nodes together, must fit into one exact bucket.
func quota(ctx context.Context, b *bench) error {
	if !b.o.bound.stated() {
		return errors.New("quota checks a bound: give -bound RATE,BURST with -url")
	}
	q := &quotaRun{bench: b, size: max(1, b.o.viewers/len(b.o.urls))}
	defer func() { dismiss(ctx, q.crowds...) }()
	for i := range b.o.urls {
		if err := q.seat(ctx, i, b.dial.targets[i]); err != nil {
			return err
		}
	}
	if q.teams.pick(inTurn) == nil {
		return fmt.Errorf("nobody came in (%s)", b.result.Connections)
	}
	return b.around(ctx, func() error {
		if err := q.room(ctx); err != nil {
			return err
		}
		if b.fleet == nil || b.o.rules != "" {
			b.result.note("one user on several nodes is not tried: only the rule set of this scenario has a quota for it")
			return nil
		}
		return q.user(ctx)
	})
}

// seat connects the viewers of place i.
func (q *quotaRun) seat(ctx context.Context, i int, target *url.URL) error {
	c, err := q.crowdAt(ctx, target, q.size, i < len(q.o.urls), nil)
	q.crowds = append(q.crowds, c)
	if err != nil {
		return err
	}
	q.teams.put(i, c)
	return nil
}

// room runs the stages against the room's quota.
func (q *quotaRun) room(ctx context.Context) error {
	q.stages = q.script()
	p := plan{label: "quota", slot: 500 * time.Millisecond, senders: 1}
	for _, s := range q.stages {
		p.phases = append(p.phases, s.phase)
		q.result.Bands = append(q.result.Bands, Band{s.name, s.begins.Seconds(), (s.begins + s.phase.lasts).Seconds()})
	}
	p.pick = func(due time.Duration) *session {
		s := q.at(due)
		return q.teams.pick(s.target(due-s.begins, q.teams.size()))
	}
	p.meanwhile = q.act
	m, calls, err := q.watched(ctx, p, q.teams.sessions())
	if m == nil {
		return err
	}
	q.result.trial(q.o, m, p.slot)
	q.result.Quota = q.sumUp(m, calls)
	return errors.Join(append(q.mishaps, err)...)
}

// watched measures a plan, and the calls to Redis meanwhile.
func (q *quotaRun) watched(ctx context.Context, p plan, viewers []*session) (*measured, []RedisCalls, error) {
	_, _ = q.sampler.read(ctx) // where nothing is known of the nodes there are no calls to count
	m, err := q.measure(ctx, p, viewers)
	if m == nil {
		return nil, nil, err
	}
	_, _ = q.sampler.read(context.WithoutCancel(ctx))
	return m, q.sampler.calls(m.trial.start), err
}

// volleyLasts is how long the user speaks without a pause.
const volleyLasts = 100 * time.Millisecond

// user lets one user with a session on each node speak faster than its quota allows.
func (q *quotaRun) user(ctx context.Context) error {
	room, same := userRooms+q.tokens.prefix, q.nextUser
	var all teams
	var sessions []*session
	for i, target := range q.dial.targets {
		c, err := q.crowdAt(ctx, target, 1, true, func(c *crowd) { c.one, c.first, c.rooms = true, same, []string{room} })
		q.crowds = append(q.crowds, c)
		if err != nil {
			return err
		}
		all.put(i, c)
		sessions = append(sessions, c.live()...)
	}
	// Twenty refusals in five seconds would be abuse, and then the user is muted: a volley, and then a tenth too much.
	const volley, faster = 12, 1.1
	rate := float64(userBound.rate)
	p := plan{label: "quota, one user", slot: time.Second, senders: 1,
		phases: []phase{steady(volleyLasts, volley/volleyLasts.Seconds()), steady(q.o.duration, faster*rate)},
		pick:   func(time.Duration) *session { return all.pick(inTurn) }}
	m, calls, err := q.watched(ctx, p, sessions)
	if m == nil {
		return err
	}
	s := stage{name: "one user", about: "one user with a session on each node", phase: steady(length(p.phases), rate), saturated: true}
	x := sumUpStages([]stage{s}, userBound, m, calls)[0]
	x.Excess = userBound.excess(m.figures.stamps)
	q.result.Quota.User = &x
	q.result.Values["user_excess"] = float64(x.Excess)
	q.result.Values["user_utilisation"] = x.Utilisation
	return err
}

// stage is a stretch of the scenario quota.
type stage struct {
	name, about string
	phase       phase
	begins      time.Duration // since the first attempt
	saturated   bool          // demand is above the quota throughout, so that what is left unused is a loss
	calm        bool          // nothing happens to the nodes: utilisation and calls count for the objectives
	// target is the node that has all the demand at an offset into the stage, or inTurn.
	target func(at time.Duration, nodes int) int
	acts   []act
}

// act is something that is done to the nodes.
type act struct {
	at time.Duration // into the stage
	do func(context.Context) error
}

// victim is the place of the node that is killed, and hurt that of the one that is paused.
const (
	victim = 1
	hurt   = 0
)

// script lays out the stages. Without nodes of our own nobody is killed.
func (q *quotaRun) script() []stage {
	d, quiet := q.o.duration, 0.2*float64(q.o.bound.rate)
	demand := q.o.rate
	if demand == 0 {
		demand = 1.5 * float64(q.o.bound.rate)
	}
	peak := q.o.peak
	if peak == 0 {
		peak = 50 * quiet
	}
	all := func(time.Duration, int) int { return inTurn }
	only := func(i int) func(time.Duration, int) int { return func(time.Duration, int) int { return i } }
	full := steady(d, demand)
	out := []stage{
		{name: "balanced", about: "demand on all nodes alike", phase: full, saturated: true, calm: true, target: all},
		{name: "skewed", about: "all demand on one node", phase: full, saturated: true, calm: true, target: only(0)},
		{name: "moving", about: "all demand on one node, another one each second", phase: full, saturated: true, calm: true,
			target: func(at time.Duration, nodes int) int { return int(at/time.Second) % nodes }},
		{name: "quiet", about: "a fifth of the quota", phase: steady(d/2, quiet), target: all},
		{name: "pulse", about: "fifty times that at once", phase: steady(d/2, peak), saturated: true, target: all},
	}
	if q.fleet != nil && len(q.o.urls) > 1 {
		out = append(out,
			stage{name: "killed", about: fmt.Sprintf("%s is killed (kill -9), and comes back under its name", nodeName(victim)), phase: full, saturated: true, target: all,
				acts: []act{{d / 5, q.kill}, {d / 2, q.replace}}},
			stage{name: "paused", about: fmt.Sprintf("%s stands still (SIGSTOP) for %s and goes on with what has piled up", nodeName(hurt), d*3/10), phase: full, saturated: true, target: all,
				acts: []act{{d / 5, q.pause}, {d / 2, q.proceed}}},
			stage{name: "added", about: "one more node comes, and then has all the demand", phase: full, saturated: true,
				target: func(at time.Duration, nodes int) int {
					if at > d/2 {
						return nodes - 1
					}
					return inTurn
				},
				acts: []act{{d / 5, q.add}}})
	}
	begins := time.Duration(0)
	for i := range out {
		out[i].begins = begins
		begins += out[i].phase.lasts
	}
	return out
}

// lastsQuota is about how long the stages take together, and the one user's.
func lastsQuota(o *options) time.Duration { return 8 * o.duration }

// at is the stage at an offset since the first attempt.
func (q *quotaRun) at(due time.Duration) stage {
	for i := len(q.stages) - 1; i > 0; i-- {
		if due >= q.stages[i].begins {
			return q.stages[i]
		}
	}
	return q.stages[0]
}

// act does what the stages say, when they say it, until ctx ends.
func (q *quotaRun) act(ctx context.Context, start time.Time) {
	for _, s := range q.stages {
		for _, a := range s.acts {
			if waitUntil(ctx, start.Add(s.begins+a.at)) != nil {
				return
			}
			if err := a.do(ctx); err != nil && ctx.Err() == nil {
				q.mishaps = append(q.mishaps, fmt.Errorf("%s: %w", s.name, err))
			}
		}
	}
}

func (q *quotaRun) kill(context.Context) error {
	q.fleet.nodes[victim].kill()
	return nil
}

func (q *quotaRun) replace(ctx context.Context) error { return q.come(ctx, victim, nodeName(victim)) }

func (q *quotaRun) add(ctx context.Context) error {
	i := q.teams.size()
	return q.come(ctx, i, nodeName(i))
}

// come starts a node and lets the viewers of place i in.
func (q *quotaRun) come(ctx context.Context, i int, name string) error {
	n, err := q.fleet.launch(ctx, name)
	if err != nil {
		return err
	}
	targets, err := parseTargets([]string{n.url})
	if err != nil {
		return err
	}
	q.sampler.watch(n.admin, n.cmd.Process.Pid)
	if i < len(q.dial.targets) {
		q.dial.targets[i] = targets[0] // for the stage that follows; nobody else dials now
	}
	return q.seat(ctx, i, targets[0])
}

func (q *quotaRun) pause(context.Context) error { return pause(q.fleet.nodes[hurt].cmd.Process) }

func (q *quotaRun) proceed(context.Context) error { return proceed(q.fleet.nodes[hurt].cmd.Process) }

// team is the viewers of one node, of whom any may send.
type team struct {
	crowd *crowd
	next  int
}

// teams picks who sends, node by node. Safe for concurrent use: the speaker picks while nodes come and go.
type teams struct {
	mu   sync.Mutex
	each []*team // guarded by mu; a node that was replaced keeps its place
	turn int     // guarded by mu
}

// inTurn stands for all nodes, one after the other.
const inTurn = -1

// pick returns who sends next on node want, or on the next one that has somebody; nil when nobody is anywhere.
func (t *teams) pick(want int) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := want
	if want == inTurn {
		first, t.turn = t.turn, (t.turn+1)%max(len(t.each), 1)
	}
	for i := range t.each {
		if s := t.each[(first+i)%len(t.each)].pick(); s != nil {
			return s
		}
	}
	return nil
}

func (m *team) pick() *session {
	all := m.crowd.all()
	for range all {
		m.next = (m.next + 1) % len(all)
		if s := all[m.next]; s.joined() {
			return s
		}
	}
	return nil
}

func (t *teams) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.each)
}

// put makes c the viewers of place i, which may be a new one.
func (t *teams) put(i int, c *crowd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i == len(t.each) {
		t.each = append(t.each, nil)
	}
	t.each[i] = &team{crowd: c}
}

// sessions are those of all teams.
func (t *teams) sessions() []*session {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*session
	for _, m := range t.each {
		out = append(out, m.crowd.live()...)
	}
	return out
}

// crowdAt connects n viewers to one node; change may alter the crowd before.
func (b *bench) crowdAt(ctx context.Context, target *url.URL, n int, stable bool, change func(*crowd)) (*crowd, error) {
	c := b.crowd(n, stable)
	dial := *b.dial
	dial.targets = []*url.URL{target}
	c.dial = &dial
	if change != nil {
		change(c)
	}
	err := c.connect(ctx, n, b.o.connectRate)
	b.connected(c, n)
	return c, err
}
