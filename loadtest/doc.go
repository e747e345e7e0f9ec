// Command loadtest loads a live room as its viewers would and says what they saw.
//
//	go run ./loadtest fanout -spawn 1 -viewers 1000 -rate 20
//	go run ./loadtest pulse -url http://live.example -secret … -slo p99=200ms,gift_loss=0
//
// The one idea: a schedule of attempts is fixed before the first one is sent, and every latency counts from the instant
// an attempt was due, so that a server that stalls can't slow the questions down and look better for it (an open loop;
// what the field calls coordinated omission is the opposite).
//
// This package is the scenarios. Below it: internal/client is the viewers, internal/process the programs that are started
// and what the system says of them, internal/report a run's figures and how they are told. A scenario has a [bench], on
// which everything stands, and fills its result; it runs on one goroutine, and what it lets run beside (visitors, frozen
// readers, the acts of the scenario quota) ends before it returns.
//
// What it does not do: it is a black box that knows package protocol alone, so it measures a server from outside and
// can't tell which part of it was slow. `ts` and its own clock are compared directly: latency since admission is right
// on one host, or between hosts whose clocks agree.
//
// Files: main.go (what it is called as), options.go, shapes.go (the list), bench.go (what a scenario stands on), plan.go (a
// plan, carried out), fill.go (the result's figures); the scenarios fanout.go (pulse and soak too), frames.go, joins.go (and
// tail), footprint.go (ramp, churn), neighbours.go (slow, fair), gifts.go, rolling.go and returning.go (its viewers), quota.go,
// teams.go (who speaks on which node), quotafigures.go, bound.go (the exact bucket); bare.go (the loops that no server is faster
// than), spawn.go and spawnrules.go (nodes that are started), sampler.go, admin.go and redis.go (what a server says of itself);
// readmetable.go and localcluster.go, which are commands.
package main
