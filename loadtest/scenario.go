package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// scenario is one shape of load.
type scenario struct {
	name     string
	about    string
	rules    func(*options) []byte // of the nodes that are spawned
	defaults defaults
	// extra is how many sessions the scenario opens besides -viewers and -frozen, at most at one time.
	extra func(*options) int
	// lasts is about how long it takes, without connecting.
	lasts func(*options) time.Duration
	run   func(context.Context, *bench) error
}

// defaults are the flags' values that differ from scenario to scenario.
type defaults struct {
	viewers, rooms, rounds, points, frozen int
	from                                   int
	rate, connectRate, peak, churn         float64
	mix, slo                               string
	duration, warmup, rise, calm, hold     time.Duration
}

func none(*options) int { return 0 }

func fixed(rules []byte) func(*options) []byte {
	return func(*options) []byte { return rules }
}

// scenarios lists them, in the order of the documentation.
func scenarios() []scenario {
	return []scenario{
		{name: "fanout", run: fanout, rules: fixed(benchRules), extra: none,
			about: "viewers in one room, danmaku at a steady rate: latency, frames, deliveries",
			lasts: func(o *options) time.Duration { return o.warmup + o.duration },
			defaults: defaults{viewers: 1000, rate: 20, mix: "danmaku=1", connectRate: 1000,
				duration: 10 * time.Second, warmup: 2 * time.Second,
				slo: "danmaku_loss=0,other_orders=0,duplicates=0,unanswered=0,unreadable=0,gift_loss=0,closes=0"}},
		{name: "ramp", run: ramp, rules: fixed(benchRules), extra: none,
			about: "idle viewers come at a steady rate, twice: the server's memory and goroutines per session, untouched and freed",
			lasts: lastsRamp,
			defaults: defaults{viewers: 18_000, from: 2000, mix: "danmaku=1", connectRate: 1000, points: 5,
				duration: time.Second, hold: 3 * time.Second, slo: "memory_per_session_freed=" + sessionFloor() + ",goroutines_per_session=0.01"}},
		{name: "pulse", run: pulse, rules: fixed(pulseRules), extra: none,
			about: "attempts rise fiftyfold within 100 ms, hold, and fall: what is admitted, degraded, refused, lost",
			lasts: func(o *options) time.Duration { return 2*(o.calm+o.rise) + o.duration },
			defaults: defaults{viewers: 2000, rate: 200, peak: 10000, mix: "danmaku=80,gift=2,like=18", connectRate: 1000,
				duration: 10 * time.Second, rise: 100 * time.Millisecond, calm: 5 * time.Second,
				slo: "gift_loss=0,quota_excess=0,~gift_p99=200ms,~recovery=1s,~memory_growth=256MB"}},
		{name: "churn", run: churn, rules: fixed(benchRules), extra: func(*options) int { return watchers },
			about: "rounds of viewers who come and go, two thirds of them rudely: what of them stays in the server",
			lasts: func(o *options) time.Duration {
				return time.Duration(o.rounds) * (o.hold + time.Duration(2*float64(o.viewers)/o.connectRate*1e9))
			},
			defaults: defaults{viewers: 2000, rate: 20, mix: "danmaku=1", connectRate: 2000, rounds: 50,
				duration: time.Second, hold: time.Second, slo: "heap_growth=5%,goroutine_growth=5%,danmaku_loss=0"}},
		{name: "slow", run: slow, rules: fixed(benchRules), extra: none,
			about: "some viewers stop reading: what the others notice, with and without them, in turns",
			lasts: func(o *options) time.Duration { return time.Duration(2*o.rounds) * (o.warmup + o.duration) },
			defaults: defaults{viewers: 5000, frozen: 100, rate: 200, mix: "danmaku=1", connectRate: 1000, rounds: 3,
				duration: 10 * time.Second, warmup: time.Second, slo: "slow_ratio=1.3,danmaku_loss=0"}},
		{name: "frames", run: frames, rules: fixed(benchRules), extra: none,
			about: "processor time per frame, of the whole server and of a bare write(2) loop over as many sockets, in turns",
			lasts: func(o *options) time.Duration { return time.Duration(2*(o.rounds+1)) * (o.duration + time.Second) },
			defaults: defaults{viewers: 1000, rate: 25_000, mix: "danmaku=1", connectRate: 1000, rounds: 7, duration: 1500 * time.Millisecond,
				slo: "frame_ratio=1.25"}},
		{name: "joins", run: joins, rules: fixed(benchRules), extra: none,
			about: "all viewers come at once, as after a network's cut: joins per second, in turns with a bare upgrade loop",
			lasts: func(o *options) time.Duration {
				return time.Duration(2*(o.rounds+1)) * (2*leaveTimeout + time.Duration(o.viewers)*time.Millisecond)
			},
			defaults: defaults{viewers: 10_000, mix: "danmaku=1", connectRate: asFast, rounds: 5, duration: time.Second, slo: "~joins_ratio=0.45"}},
		{name: "tail", run: longTail, rules: fixed(benchRules), extra: none,
			about: "many small rooms, one publisher each, at rising rates: what a delivery and a message cost beside a bare write(2)",
			lasts: func(o *options) time.Duration {
				return time.Duration(len(tailRates)) * (o.warmup + o.duration + 5*time.Second)
			},
			defaults: defaults{viewers: 5000, rooms: 500, rate: 7000, mix: "danmaku=1", connectRate: 1000, duration: 10 * time.Second, warmup: 2 * time.Second,
				slo: "danmaku_loss=0,~message_cpu=60us"}},
		{name: "fair", run: fair, rules: fixed(benchRules), extra: fairExtra,
			about: "a small room beside a huge one that people join and leave all the time, and alone, in turns",
			lasts: func(o *options) time.Duration { return time.Duration(2*o.rounds) * (o.warmup + o.duration) },
			defaults: defaults{viewers: 5000, rate: 500, churn: 500, mix: "danmaku=1", connectRate: 1000, rounds: 3,
				duration: 10 * time.Second, warmup: time.Second, slo: "fair_ratio=2,danmaku_loss=0"}},
		{name: "soak", run: soak, rules: fixed(benchRules), extra: func(o *options) int { return int(2 * o.churn * visit.Seconds()) },
			about: "everything at once, for long: chat, gifts, likes, visitors, frozen readers, several rooms",
			lasts: func(o *options) time.Duration { return o.warmup + o.duration },
			defaults: defaults{viewers: 1000, rooms: 3, frozen: 5, rate: 60, churn: 5, mix: "danmaku=82,gift=3,like=15", connectRate: 500,
				duration: 10 * time.Minute, warmup: 2 * time.Second, slo: "gift_loss=0,duplicates=0,like_falls=0,unanswered=0,unreadable=0"}},
		{name: "quota", run: quota, rules: quotaRules, extra: func(o *options) int { return 2*o.viewers + 8 }, lasts: lastsQuota,
			about: "one room's quota over several nodes, whatever is done to them: exactness, utilisation, calls to Redis",
			defaults: defaults{viewers: 180, mix: "danmaku=1", connectRate: 1000, duration: 10 * time.Second,
				slo: "utilisation=98%,redis_room_calls=150,user_excess=0,evidence_differs=0"}},
	}
}

func scenarioNamed(name string) (scenario, bool) {
	for _, s := range scenarios() {
		if s.name == name {
			return s, true
		}
	}
	return scenario{}, false
}

// help is the help of the tool itself.
func help(w io.Writer) {
	fmt.Fprint(w, "loadtest loads a live room as its viewers would and says what they saw.\n\n"+
		"  go run ./loadtest SCENARIO (-url ADDRESS | -spawn N) [flags]\n  go run ./loadtest SCENARIO -help\n\n")
	for _, s := range scenarios() {
		fmt.Fprintf(w, "  %-7s %s\n", s.name, s.about)
	}
	fmt.Fprintf(w, "\n  %-7s %s\n  %-7s %s\n", "table", tableAbout, "cluster", clusterAbout)
	fmt.Fprint(w, "\nExit: 0 done, 1 an objective (-slo) or a bound was missed or the run failed, 2 wrong arguments.\n\nFigures for -slo NAME=BOUND:\n")
	for _, q := range quantities() {
		relation := "at most "
		if q.atLeast {
			relation = "at least"
		}
		fmt.Fprintf(w, "  %-23s %s  %s\n", q.name, relation, q.about)
	}
}
