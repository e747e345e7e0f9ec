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
	watch   *redisWatch
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
	var redis *child
	redisURL := ""
	if b.fleet != nil && b.fleet.shared != nil {
		redis, redisURL = b.fleet.shared.redis, b.fleet.shared.redisURL
	}
	q.watch = newRedisWatch(b.o.admins, redis, redisURL)
	defer func() { dismiss(context.WithoutCancel(ctx), q.crowds) }()
	for i := range b.o.urls {
		if err := q.seat(ctx, i, nodeName(i), b.dial.targets[i]); err != nil {
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
func (q *quotaRun) seat(ctx context.Context, i int, node string, target *url.URL) error {
	c, err := q.crowdAt(ctx, target, q.size, i < len(q.o.urls), nil)
	q.crowds = append(q.crowds, c)
	if err != nil {
		return err
	}
	q.teams.put(i, node, c)
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
	p.meanwhile = func(ctx context.Context, start time.Time) {
		var wg sync.WaitGroup
		wg.Go(func() { q.watch.run(ctx, start) })
		q.act(ctx, start)
		wg.Wait()
	}
	m, err := q.measure(ctx, p, q.teams.sessions())
	if m == nil {
		return err
	}
	q.result.trial(q.o, m, p.slot)
	q.result.Quota = q.sumUp(m)
	return errors.Join(append(q.mishaps, err)...)
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
		all.put(i, nodeName(i), c)
		sessions = append(sessions, c.live()...)
	}
	// Twenty refusals in five seconds would be abuse, and then the user is muted: a volley, and then a tenth too much.
	const volley, faster = 12, 1.1
	rate := float64(userBound.rate)
	p := plan{label: "quota, one user", slot: time.Second, senders: 1,
		phases: []phase{steady(volleyLasts, volley/volleyLasts.Seconds()), steady(q.o.duration, faster*rate)},
		pick:   func(time.Duration) *session { return all.pick(inTurn) }, meanwhile: q.watch.run}
	m, err := q.measure(ctx, p, sessions)
	if m == nil {
		return err
	}
	s := stage{name: "one user", about: "one user with a session on each node", phase: steady(length(p.phases), rate), saturated: true}
	x := sumUpStages([]stage{s}, userBound, m, q.watch.calls())[0]
	x.Excess = userBound.excess(m.figures.stamps)
	q.result.Quota.User = &x
	q.result.Values["user_excess"] = float64(x.Excess)
	q.result.Values["user_utilisation"] = x.Utilisation
	return err
}
