package limit

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawLimit draws limits that people write, and some that nobody would.
func drawLimit(t *rapid.T, name string) Limit {
	return Limit{
		Rate:  rapid.SampledFrom([]int64{0, 1, 2, 3, 5, 7, 20, 200, 997, 5000, 1_000_003}).Draw(t, name+".rate"),
		Per:   Duration(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 7 * time.Second, 30 * time.Second, time.Hour, 24 * time.Hour}).Draw(t, name+".per")),
		Burst: rapid.SampledFrom([]int64{1, 2, 3, 5, 20, 40, 1000}).Draw(t, name+".burst"),
	}
}

// drawStep draws a time step whose size has any order of magnitude.
func drawStep(t *rapid.T) time.Duration {
	scale := rapid.SampledFrom([]time.Duration{0, 1, time.Microsecond, time.Millisecond, 100 * time.Millisecond, time.Second, time.Minute, time.Hour, 1e6 * time.Hour}).Draw(t, "scale")
	return scale * time.Duration(rapid.Int64Range(0, min(20, int64(math.MaxInt64/max(scale, 1)))).Draw(t, "steps"))
}

func mustNumbers(t interface{ Fatal(...any) }, l Limit) *numbers {
	m, err := newNumbers(l)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// check returns what is wrong with the bucket's state.
func (b *oneBucket) check(now Instant) string {
	switch level := b.Level(now); {
	case level < 0 || level > b.rate.size/b.rate.whole:
		return "level out of [0, burst]"
	case b.full < longFull || b.full > maxSpanUnits+maxUnits:
		return "state out of range"
	}
	return ""
}

func TestBucketAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, "limit")
		now := Instant(rapid.Int64().Draw(t, "start"))
		bucket, ref := mustNumbers(t, l).bucket(now), newRef(l, now)
		t.Repeat(map[string]func(*rapid.T){
			"step": func(t *rapid.T) { now = now.Add(drawStep(t)) },
			"take": func(t *rapid.T) {
				n := rapid.Int64Range(0, l.Burst+2).Draw(t, "n")
				need := tokens(n, 1)
				want := ref.wait(now, need)
				ok, wait, err := bucket.Take(now, n)
				if err != nil || ok != (want == 0) || wait != want {
					t.Fatalf("take %d: have %v %v %v, want wait %v", n, ok, wait, err, want)
				}
				if ok {
					ref.spend(need)
				}
			},
			"hammer": func(t *rapid.T) {
				before := bucket.Level(now)
				for range 5 {
					bucket.Take(now, l.Burst+1)
				}
				if after := bucket.Level(now); after != before {
					t.Fatalf("refusals moved the level from %d to %d", before, after)
				}
			},
			"": func(t *rapid.T) {
				if have, want := bucket.Level(now), floor(ref.at(now)); have != want {
					t.Fatalf("level: have %d, want %d", have, want)
				}
				if fault := bucket.check(now); fault != "" {
					t.Fatal(fault)
				}
			},
		})
	})
}

// admission is a granted request.
type admission struct {
	at   Instant
	cost int64
}

// checkWindows fails when some window of the admissions' own readings holds
// more than burst + rate*w. It compares exactly.
func checkWindows(t interface{ Fatalf(string, ...any) }, l Limit, all []admission) {
	slices.SortFunc(all, func(a, b admission) int { return cmp.Compare(a.at, b.at) })
	for i, from := range all {
		sum := int64(0)
		bound := newRef(l, from.at)
		bound.burst.SetInt64(math.MaxInt64)
		for j, to := range all[i:] {
			sum += to.cost
			if i+j+1 < len(all) && all[i+j+1].at == to.at {
				continue
			}
			if tokens(sum, 1).Cmp(bound.at(to.at)) > 0 {
				t.Fatalf("window [%d, %d] admitted %d of %v", from.at, to.at, sum, l)
			}
		}
	}
}

func TestProperty1AnyWindowInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, "limit")
		per := int64(l.Per)
		bucket := mustNumbers(t, l).bucket(0)
		var all []admission
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			at := Instant(rapid.Int64Range(-per, 3*per).Draw(t, "at"))
			n := rapid.Int64Range(1, l.Burst).Draw(t, "n")
			if ok, _, _ := bucket.Take(at, n); ok {
				all = append(all, admission{at, n})
			}
		}
		checkWindows(t, l, all)
	})
}

func TestProperty2AnOlderReadingChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, "limit")
		now := Instant(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "now"))
		bucket := mustNumbers(t, l).bucket(0)
		bucket.Take(now, rapid.Int64Range(0, l.Burst).Draw(t, "spent"))
		level := bucket.Level(now)
		old := now.Add(-time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "back")))
		for range 10 {
			if ok, _, _ := bucket.Take(old, 1); ok {
				level--
			}
			bucket.Level(old)
		}
		if have := bucket.Level(now); have > level {
			t.Fatalf("older readings minted: level %d, want %d", have, level)
		}
	})
}

func TestProperty2ThreeHundredIdleYears(t *testing.T) {
	for _, l := range []Limit{
		{Rate: 1, Per: Duration(10 * time.Second), Burst: 7},
		{Rate: 1_000_003, Burst: 1000},
		{Rate: 1, Per: maxPer, Burst: 20},
	} {
		const start = Instant(math.MinInt64 / 2)
		bucket := mustNumbers(t, l).bucket(start)
		bucket.Take(start, l.Burst)
		now := start
		for range 3 {
			now = now.Add(100 * 365 * 24 * time.Hour)
		}
		if have := bucket.Level(now); have != l.Burst {
			t.Errorf("%v: after 300 years %d tokens", l, have)
		}
		if ok, _, _ := bucket.Take(now, l.Burst); !ok {
			t.Errorf("%v: the burst is not there", l)
		}
		if ok, wait, _ := bucket.Take(now, 1); ok || wait <= 0 {
			t.Errorf("%v: more than the burst is there", l)
		}
	}
}

func TestProperty3EachTokenAtItsIdealInstant(t *testing.T) {
	for _, l := range []Limit{{Rate: 3, Burst: 2}, {Rate: 20, Per: Duration(30 * time.Second), Burst: 5}, {Rate: 997, Burst: 3}} {
		bucket := mustNumbers(t, l).bucket(0)
		bucket.Take(0, l.Burst)
		per := int64(l.Per)
		if per == 0 {
			per = int64(time.Second)
		}
		for k := int64(1); k <= 3*l.Rate; k++ {
			ideal := Instant((k*per + l.Rate - 1) / l.Rate)
			if ok, _, _ := bucket.Take(ideal-1, 1); ok {
				t.Fatalf("%v: token %d came early", l, k)
			}
			if ok, _, _ := bucket.Take(ideal, 1); !ok {
				t.Fatalf("%v: token %d came late", l, k)
			}
		}
	}
}

func TestProperty3PollingEachMillisecond(t *testing.T) {
	bucket := mustNumbers(t, Limit{Rate: 1, Per: Duration(10 * time.Second), Burst: 1}).bucket(0)
	granted := 0
	for now := Instant(0); now <= Instant(100*time.Second); now = now.Add(time.Millisecond) {
		if ok, _, _ := bucket.Take(now, 1); ok {
			granted++
		}
	}
	if granted != 11 {
		t.Fatalf("granted %d in 100 s, want 1 + 10", granted)
	}
}

func TestProperty4ExactRetry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, "limit")
		now := Instant(rapid.Int64Range(-1e18, 1e18).Draw(t, "now"))
		m := mustNumbers(t, l)
		bucket := m.bucket(now)
		bucket.Take(now, rapid.Int64Range(0, l.Burst).Draw(t, "spent"))
		n := rapid.Int64Range(0, l.Burst+1).Draw(t, "n")
		before := bucket.Level(now)
		ok, wait, _ := bucket.Take(now, n)
		switch {
		case n == 0 && (!ok || bucket.Level(now) != before):
			t.Fatal("cost 0 is not free")
		case n > l.Burst && (ok || wait != Never):
			t.Fatalf("cost above burst: %v %v", ok, wait)
		case ok || wait == Never:
			return
		}
		if ok, again, _ := bucket.Take(now.Add(wait-1), n); ok || again != 1 {
			t.Fatalf("a tick less succeeds, or waits %v", again)
		}
		if ok, _, _ := bucket.Take(now.Add(wait), n); !ok {
			t.Fatal("waiting it out fails")
		}
	})
}

func TestProperty4Edges(t *testing.T) {
	bucket := mustNumbers(t, Limit{Rate: 0, Burst: 2}).bucket(0)
	if _, _, err := bucket.Take(0, -1); err != ErrNegativeCost {
		t.Errorf("negative cost: %v", err)
	}
	bucket.Take(0, 2)
	if ok, wait, _ := bucket.Take(math.MaxInt64, 1); ok || wait != Never {
		t.Errorf("rate 0 gave more than its burst: %v %v", ok, wait)
	}
}

// FuzzBucket plays a bucket against the reference: the first bytes are the
// limit, then each byte pair a step of time and a cost.
func FuzzBucket(f *testing.F) {
	f.Add(int64(20), int64(30*time.Second), int64(20), []byte{0, 20, 1, 1, 200, 3})
	f.Add(int64(0), int64(time.Second), int64(1), []byte{0, 1, 255, 1, 255, 1})
	f.Add(int64(1_000_003), int64(maxPer), int64(1000), []byte{255, 9, 7, 250})
	f.Fuzz(func(t *testing.T, n, per, burst int64, moves []byte) {
		l := Limit{Rate: n, Per: Duration(per), Burst: burst}
		m, err := newNumbers(l)
		if err != nil {
			return
		}
		now := Instant(0)
		bucket, ref := m.bucket(now), newRef(l, now)
		for i := 0; i+1 < len(moves) && i < 200; i += 2 {
			now = now.Add(time.Duration(1) << (moves[i] % 63))
			cost := min(int64(moves[i+1]), burst)
			need := tokens(cost, 1)
			want := ref.wait(now, need)
			ok, wait, _ := bucket.Take(now, cost)
			if ok != (want == 0) || wait != want {
				t.Fatalf("at %d, cost %d: %v after %v, want %v", now, cost, ok, wait, want)
			}
			if ok {
				ref.spend(need)
			}
		}
	})
}
