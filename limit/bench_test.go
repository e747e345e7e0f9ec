package limit

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	xrate "golang.org/x/time/rate"
)

// The contenders share one shape: n decisions, each step later than the one
// before, on buckets of 1,000,000/s with burst 1,000.

const (
	benchStep = 2 * time.Microsecond
	// Rounds are shorter than a time slice and many, so that the median
	// stands on a busy machine, too.
	benchRounds = 201
	benchN      = 10_000
)

const benchRules = `
rules:
  - {name: conn, action: danmaku, scope: conn, rate: 1000000, burst: 1000}
  - {name: user, action: danmaku, scope: user, rate: 1000000, burst: 1000}
  - {name: room, action: danmaku, scope: room, rate: 1000000, burst: 1000}
`

type contender struct {
	name string
	run  func(n int)
}

func contenders(b *testing.B, step time.Duration) []contender {
	limiter := xrate.NewLimiter(1e6, 1000)
	when := time.Now()
	meter, err := newNumbers(Limit{Rate: 1_000_000, Burst: 1000})
	if err != nil {
		b.Fatal(err)
	}
	var now Instant
	bucket := meter.bucket(now)
	gate := NewGate(mustCompile(b, benchRules), func() Instant { return 0 })
	conn, user, room := &Subject{Scope: ScopeConn}, &Subject{Scope: ScopeUser}, &Subject{Scope: ScopeRoom}
	q := &Request{Action: Danmaku, Role: "viewer", Room: "demo"}
	var later Instant
	shipped := NewGate(defaultRulesSet(b), atZero)
	conns := []*Subject{{Scope: ScopeConn}, {Scope: ScopeUser}, {Scope: ScopeUserRoom}, {Scope: ScopeRoom}}
	return []contender{
		{"x/time/rate", func(n int) {
			for range n {
				when = when.Add(step)
				limiter.AllowN(when, 1)
			}
		}},
		{"bucket", func(n int) {
			for range n {
				now = now.Add(step)
				bucket.Take(now, 1)
			}
		}},
		{"gate-conn", func(n int) {
			for range n {
				now = now.Add(step)
				gate.Decide(now, q, conn)
			}
		}},
		{"gate-conn-user-room", func(n int) {
			for range n {
				now = now.Add(step)
				gate.Decide(now, q, conn, user, room)
			}
		}},
		{"gate-default-danmaku", func(n int) {
			// Every rule that ships for a danmaku: connection, two windows of
			// the user, and the room's tiers with their degrade bucket.
			for range n {
				later = later.Add(step * 500_000)
				shipped.Decide(later, q, conns[0], conns[1], conns[2], conns[3])
			}
		}},
	}
}

// BenchmarkRatio prints, for each contender, the median of interleaved rounds
// in ns, its spread (lower and upper quartile), and the ratio to x/time/rate.
// Run it with -benchtime 1x.
func BenchmarkRatio(b *testing.B) {
	for _, c := range []struct {
		name string
		step time.Duration
	}{{"admitted", benchStep}, {"refused", 0}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				report(b, contenders(b, c.step), func(run func(int)) { run(benchN) })
			}
		})
	}
}

// BenchmarkRatioContended is BenchmarkRatio with all cores on the same
// buckets, at fixed instants so that the callers share no clock.
func BenchmarkRatioContended(b *testing.B) {
	limiter := xrate.NewLimiter(1e6, 1000)
	when := time.Now()
	meter, err := newNumbers(Limit{Rate: 1_000_000, Burst: 1000})
	if err != nil {
		b.Fatal(err)
	}
	bucket := meter.bucket(0)
	gate := NewGate(mustCompile(b, benchRules), func() Instant { return 0 })
	room := &Subject{Scope: ScopeRoom}
	q := &Request{Action: Danmaku, Role: "viewer", Room: "demo"}
	all := []contender{
		{"x/time/rate", func(n int) {
			for i := range n {
				limiter.AllowN(when.Add(time.Duration(i)*benchStep), 1)
			}
		}},
		{"bucket", func(n int) {
			for i := range n {
				bucket.Take(Instant(i)*Instant(benchStep), 1)
			}
		}},
		{"gate-room", func(n int) {
			for i := range n {
				gate.Decide(Instant(i)*Instant(benchStep), q, room)
			}
		}},
		{"gate-conn-user-room", func(n int) {
			conn, user := &Subject{Scope: ScopeConn}, &Subject{Scope: ScopeUser}
			for i := range n {
				gate.Decide(Instant(i)*Instant(benchStep), q, conn, user, room)
			}
		}},
	}
	for b.Loop() {
		report(b, all, func(run func(int)) {
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { run(benchN / 2) })
			}
			wg.Wait()
		})
	}
}

func report(b *testing.B, all []contender, round func(run func(int))) {
	times := make([][]float64, len(all))
	for range benchRounds {
		for i, c := range all {
			start := time.Now()
			round(c.run)
			times[i] = append(times[i], float64(time.Since(start).Nanoseconds())/benchN)
		}
	}
	base := 0.0
	for i, c := range all {
		slices.Sort(times[i])
		median := times[i][benchRounds/2]
		if i == 0 {
			base = median
		}
		fmt.Printf("%-32s %-20s %6.1f ns (%.1f to %.1f)  %.2f x\n",
			b.Name(), c.name, median, times[i][benchRounds/4], times[i][benchRounds*3/4], median/base)
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, c := range contenders(b, benchStep) {
		b.Run(c.name, func(b *testing.B) { b.ReportAllocs(); c.run(b.N) })
	}
}
