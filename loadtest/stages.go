package main

import (
	"context"
	"fmt"
	"time"
)

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
	q.watch.add(n.admin)
	q.sampler.watch(n.admin, n.cmd.Process.Pid)
	if i < len(q.dial.targets) {
		q.dial.targets[i] = targets[0] // for the stage that follows; nobody else dials now
	}
	return q.seat(ctx, i, name, targets[0])
}

func (q *quotaRun) pause(context.Context) error { return pause(q.fleet.nodes[hurt].cmd.Process) }

func (q *quotaRun) proceed(context.Context) error { return proceed(q.fleet.nodes[hurt].cmd.Process) }
