package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"liveroom/loadtest/internal/client"
	"liveroom/loadtest/internal/process"
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
	size    int             // viewers of each node
	crowds  []*client.Crowd // all that ever came; owned by the scenario's goroutine, and by the stages' acts while they run
	stages  []stage
	calls   []redisCalls // at the stages' begins, and at the end; owned likewise
	mishaps []error      // of the acts
}

// quota asks whether one quota holds over several nodes, whatever is done to them, and what it costs: every admitted
// danmaku's instant of admission, of all nodes together, must fit into one exact bucket.
func quota(ctx context.Context, b *bench) error {
	if !b.o.bound.stated() {
		return errors.New("quota checks a bound: give -bound RATE,BURST with -url")
	}
	q := &quotaRun{bench: b, size: max(1, b.o.viewers/len(b.o.urls))}
	defer func() { client.Dismiss(ctx, q.crowds...) }()
	for i := range b.o.urls {
		if err := q.seat(ctx, i, b.dial.Targets[i]); err != nil {
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
			b.result.Note("one user on several nodes is not tried: only the rule set of this scenario has a quota for it")
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
		q.band(s.name, s.begins.Seconds(), (s.begins + s.phase.Lasts).Seconds())
	}
	p.pick = func(due time.Duration) *client.Session {
		s := q.at(due)
		return q.teams.pick(s.target(due-s.begins, q.teams.size()))
	}
	p.meanwhile = q.act
	m, err := q.mainTrial(ctx, p, q.teams.sessions())
	if m == nil {
		return err
	}
	q.look(ctx)
	q.result.Quota = q.sumUp(m)
	return errors.Join(append(q.mishaps, err)...)
}

// look notes the calls to Redis until now. Where nothing is known of the nodes there are none.
func (q *quotaRun) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	x, _ := q.sampler.read(ctx)
	q.calls = append(q.calls, x.redis)
}

// volleyLasts is how long the user speaks without a pause.
const volleyLasts = 100 * time.Millisecond

// user lets one user with a session on each node speak faster than its quota allows.
func (q *quotaRun) user(ctx context.Context) error {
	room, same := userRooms+q.tokens.Prefix, q.nextUser
	var all teams
	var sessions []*client.Session
	for i, target := range q.dial.Targets {
		c, err := q.crowdAt(ctx, target, 1, true, func(c *client.Crowd) { c.One, c.First, c.Rooms = true, same, []string{room} })
		q.crowds = append(q.crowds, c)
		if err != nil {
			return err
		}
		all.put(i, c)
		sessions = append(sessions, c.Live()...)
	}
	// Twenty refusals in five seconds would be abuse, and then the user is muted: a volley, and then a tenth too much.
	const volley, faster = 12, 1.1
	rate := float64(userBound.rate)
	p := plan{label: "quota, one user", slot: time.Second, senders: 1,
		phases: []client.Phase{client.Steady(volleyLasts, volley/volleyLasts.Seconds()), client.Steady(q.o.duration, faster*rate)},
		pick:   func(time.Duration) *client.Session { return all.pick(inTurn) }}
	before := len(q.calls)
	q.look(ctx)
	m, err := q.measure(ctx, p, sessions)
	if m == nil {
		return err
	}
	q.look(ctx)
	s := stage{name: "one user", about: "one user with a session on each node", phase: client.Steady(client.Length(p.phases), rate), saturated: true}
	x := sumUpStages([]stage{s}, userBound, m, q.calls[before:])[0]
	x.Excess = userBound.excess(m.stamps)
	q.result.Quota.User = &x
	q.result.Values["user_excess"] = float64(x.Excess)
	q.result.Values["user_utilisation"] = x.Utilisation
	return err
}

// stage is a stretch of the scenario quota.
type stage struct {
	name, about string
	phase       client.Phase
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

// quotaStages is about how many -durations the scenario takes.
const quotaStages = 9

// script lays out the stages. Without nodes of our own nobody is killed.
func (q *quotaRun) script() []stage {
	d, quiet, demand, peak := q.o.duration, 0.2*float64(q.o.bound.rate), q.o.rate, q.o.peak
	if demand == 0 {
		demand = 1.5 * float64(q.o.bound.rate)
	}
	if peak == 0 {
		peak = 50 * quiet
	}
	all := func(time.Duration, int) int { return inTurn }
	full := stage{phase: client.Steady(d, demand), saturated: true, target: all}
	calm := full
	calm.calm = true
	out := []stage{
		calm.named("balanced", "demand on all nodes alike"),
		calm.on(func(time.Duration, int) int { return 0 }).named("skewed", "all demand on one node"),
		calm.on(func(at time.Duration, nodes int) int { return int(at/time.Second) % nodes }).named("moving", "all demand on one node, another one each second"),
		{name: "quiet", about: "a fifth of the quota", phase: client.Steady(d/2, quiet), target: all},
		{name: "pulse", about: "fifty times that at once", phase: client.Steady(d/2, peak), saturated: true, target: all},
	}
	if q.fleet != nil && len(q.o.urls) > 1 {
		last := func(at time.Duration, nodes int) int {
			if at > d/2 {
				return nodes - 1
			}
			return inTurn
		}
		out = append(out,
			full.named("killed", fmt.Sprintf("%s is killed (kill -9), and comes back under its name", nodeName(victim)), act{d / 5, q.kill}, act{d / 2, q.replace}),
			full.named("paused", fmt.Sprintf("%s stands still (SIGSTOP) for %s and goes on with what has piled up", nodeName(hurt), d*3/10), act{d / 5, q.pause}, act{d / 2, q.proceed}),
			full.on(last).named("added", "one more node comes, and then has all the demand", act{d / 5, q.add}))
	}
	begins := time.Duration(0)
	for i := range out {
		out[i].begins = begins
		begins += out[i].phase.Lasts
	}
	return out
}

func (s stage) named(name, about string, acts ...act) stage {
	s.name, s.about, s.acts = name, about, acts
	return s
}

func (s stage) on(target func(at time.Duration, nodes int) int) stage {
	s.target = target
	return s
}

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
		acts := append([]act{{0, func(ctx context.Context) error { q.look(ctx); return nil }}}, s.acts...)
		for _, a := range acts {
			if client.WaitUntil(ctx, start.Add(s.begins+a.at)) != nil {
				return
			}
			if err := a.do(ctx); err != nil && ctx.Err() == nil {
				q.mishaps = append(q.mishaps, fmt.Errorf("%s: %w", s.name, err))
			}
		}
	}
}

func (q *quotaRun) kill(context.Context) error {
	q.fleet.nodes[victim].Kill()
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
	targets, err := client.ParseTargets([]string{n.url})
	if err != nil {
		return err
	}
	q.sampler.watch(n.admin, n.Cmd.Process.Pid, false)
	if i < len(q.dial.Targets) {
		q.dial.Targets[i] = targets[0] // for the stage that follows; nobody else dials now
	}
	return q.seat(ctx, i, targets[0])
}

func (q *quotaRun) pause(context.Context) error {
	return process.Pause(q.fleet.nodes[hurt].Cmd.Process)
}

func (q *quotaRun) proceed(context.Context) error {
	return process.Proceed(q.fleet.nodes[hurt].Cmd.Process)
}

// crowdAt connects n viewers to one node; change may alter the crowd before.
func (b *bench) crowdAt(ctx context.Context, target *url.URL, n int, stable bool, change func(*client.Crowd)) (*client.Crowd, error) {
	c := b.crowd(n, stable)
	dial := *b.dial
	dial.Targets = []*url.URL{target}
	c.Dial = &dial
	if change != nil {
		change(c)
	}
	err := c.Connect(ctx, n, b.o.connectRate)
	b.connected(c, n)
	return c, err
}
