package main

import (
	"context"
	"fmt"
	"io"

	"liveroom/loadtest/internal/report"
)

// scenario is one shape of load.
type scenario struct {
	name, about string
	run         func(context.Context, *bench) error
	flags       string                // the defaults that are its own
	rules       func(*options) []byte // of the nodes that are spawned; nil: [benchRules]
	extra       func(*options) int    // how many sessions it opens besides -viewers and -frozen, at most at one time; nil: none
	trials      int                   // how many it makes, besides what -rounds and -points say
}

func fixed(rules []byte) func(*options) []byte {
	return func(*options) []byte { return rules }
}

// scenarios lists them, in the order of the documentation.
func scenarios() []scenario {
	return []scenario{
		{name: "fanout", run: fanout, about: "viewers in one room, danmaku at a steady rate: latency, frames, deliveries",
			flags: "-viewers 1000 -rate 20 -duration 10s -warmup 2s " +
				"-slo danmaku_loss=0,other_orders=0,duplicates=0,unanswered=0,unreadable=0,gift_loss=0,closes=0"},
		{name: "ramp", run: ramp, about: "idle viewers come at a steady rate, twice: the server's memory and goroutines per session, untouched and freed",
			flags: "-viewers 18000 -from 2000 -points 5 -hold 3s -slo memory_per_session_freed=" + sessionFloor() + ",goroutines_per_session=0.01"},
		{name: "pulse", run: pulse, rules: fixed(pulseRules), about: "attempts rise fiftyfold within 100 ms, hold, and fall: what is admitted, degraded, refused, lost",
			flags: "-viewers 2000 -rate 200 -peak 10000 -mix danmaku=80,gift=2,like=18 -duration 10s -rise 100ms -calm 5s " +
				"-slo gift_loss=0,quota_excess=0,~gift_p99=200ms,~recovery=1s,~memory_growth=256MB"},
		{name: "churn", run: churn, extra: func(*options) int { return watchers },
			about: "rounds of viewers who come and go, two thirds of them rudely: what of them stays in the server",
			flags: "-viewers 2000 -rate 20 -connect-rate 2000 -rounds 50 -hold 1s -slo heap_growth=5%,goroutine_growth=5%,danmaku_loss=0"},
		{name: "slow", run: slow, about: "some viewers stop reading: what the others notice, with and without them, in turns",
			flags: "-viewers 5000 -frozen 100 -rate 200 -rounds 3 -duration 10s -warmup 1s -slo slow_ratio=1.3,danmaku_loss=0"},
		{name: "frames", run: frames, about: "processor time per frame, of the whole server and of a bare write(2) loop over as many sockets, in turns",
			flags: "-viewers 1000 -rate 25000 -rounds 7 -duration 1500ms -slo frame_ratio=1.25"},
		{name: "joins", run: joins, about: "all viewers come at once, as after a network's cut: joins per second, in turns with a bare upgrade loop",
			flags: "-viewers 10000 -connect-rate 1e9 -rounds 5 -slo ~joins_ratio=0.45"},
		{name: "tail", run: longTail, trials: len(tailRates),
			about: "many small rooms, one publisher each, at rising rates: what a delivery and a message cost beside a bare write(2)",
			flags: "-viewers 5000 -rooms 500 -rate 7000 -duration 10s -warmup 2s -slo danmaku_loss=0,~message_cpu=60us"},
		{name: "fair", run: fair, extra: fairExtra, about: "a small room beside a huge one that people join and leave all the time, and alone, in turns",
			flags: "-viewers 5000 -rate 500 -churn 500 -rounds 3 -duration 10s -warmup 1s -slo fair_ratio=2,danmaku_loss=0"},
		{name: "soak", run: soak, extra: func(o *options) int { return int(2 * o.churn * soakVisit.Seconds()) },
			about: "everything at once, for long: chat, gifts, likes, visitors, frozen readers, several rooms",
			flags: "-viewers 1000 -rooms 3 -frozen 5 -rate 60 -churn 5 -mix danmaku=82,gift=3,like=15 -connect-rate 500 -duration 10m -warmup 2s " +
				"-slo gift_loss=0,duplicates=0,like_falls=0,unanswered=0,unreadable=0"},
		{name: "gifts", run: gifts, about: "gifts alone, at a steady rate, from all viewers: acknowledged, how soon, and what the ledger has, beside a sync for each",
			flags: "-viewers 1000 -rooms 50 -senders 1000 -rate 10000 -mix gift=1 -duration 10s -warmup 2s -slo ledger_missing=0,~gift_ack_p99=100ms,~gift_ack_max=3s"},
		{name: "rolling", run: rolling,
			about: "all nodes are restarted one after the other under danmaku and gifts, with viewers who come back: what each of them missed",
			flags: "-spawn 3 -viewers 10000 -rooms 100 -drain 10s -settle 5s -slo gift_loss=0,unannounced=1%,unreadable=0"},
		{name: "quota", run: quota, rules: quotaRules, extra: func(o *options) int { return 2*o.viewers + 8 }, trials: quotaStages,
			about: "one room's quota over several nodes, whatever is done to them: exactness, utilisation, calls to Redis",
			flags: "-viewers 180 -duration 10s -slo utilisation=98%,redis_room_calls=150,user_excess=0,evidence_differs=0"},
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
	for _, q := range report.Quantities() {
		relation := "at most "
		if q.AtLeast {
			relation = "at least"
		}
		fmt.Fprintf(w, "  %-23s %s  %s\n", q.Name, relation, q.About)
	}
}
