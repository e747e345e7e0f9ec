package limit

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// refMeter is an algorithm by the book, in tokens, on the absolute clock.
type refMeter interface {
	level(now Instant) *big.Rat
	take(now Instant, tokens *big.Rat)
}

func (b *refBucket) take(now Instant, tokens *big.Rat) { b.at(now); b.spend(tokens) }

type refBucketMeter struct{ *refBucket }

func (b refBucketMeter) level(now Instant) *big.Rat { return b.at(now) }

// refGrants remembers everything that was ever taken.
type refGrants struct {
	quota  int64
	length int64
	at     []Instant
	tokens []*big.Rat
}

func (g *refGrants) take(now Instant, tokens *big.Rat) {
	g.at, g.tokens = append(g.at, now), append(g.tokens, tokens)
}

// window returns the number of the clock's window.
func (g *refGrants) window(now Instant) *big.Int {
	return floorInt(big.NewRat(int64(now), g.length))
}

// in sums what was taken in a window of the clock.
func (g *refGrants) in(window *big.Int) *big.Rat {
	sum := new(big.Rat)
	for i, at := range g.at {
		if g.window(at).Cmp(window) == 0 {
			sum.Add(sum, g.tokens[i])
		}
	}
	return sum
}

type refFixed struct{ refGrants }

func (g *refFixed) level(now Instant) *big.Rat {
	return new(big.Rat).Sub(tokens(g.quota, 1), g.in(g.window(now)))
}

type refSliding struct {
	refGrants
	whole int64
}

func (g *refSliding) level(now Instant) *big.Rat {
	window := g.window(now)
	begin := new(big.Int).Mul(window, big.NewInt(g.length))
	left := new(big.Int).Sub(new(big.Int).Add(begin, big.NewInt(g.length)), big.NewInt(int64(now)))
	weight := new(big.Rat).SetFrac(left, big.NewInt(g.length))
	weight.Mul(weight, g.in(new(big.Int).Sub(window, big.NewInt(1))))
	// Counted in whole units, rounded against the caller.
	weight.Mul(weight, tokens(g.whole, 1))
	counted := new(big.Rat).SetFrac(new(big.Int).Neg(floorInt(weight.Neg(weight))), big.NewInt(g.whole))
	level := new(big.Rat).Sub(tokens(g.quota, 1), g.in(window))
	return level.Sub(level, counted)
}

type refLog struct{ refGrants }

func (g *refLog) level(now Instant) *big.Rat {
	level := tokens(g.quota, 1)
	since := new(big.Int).Sub(big.NewInt(int64(now)), big.NewInt(g.length))
	for i, at := range g.at {
		if big.NewInt(int64(at)).Cmp(since) > 0 {
			level.Sub(level, g.tokens[i])
		}
	}
	return level
}

// refSlots: a slot is a grant of the log that no one has released.
type refSlots struct{ refLog }

// release takes back the i-th grant.
func (g *refSlots) release(i int) {
	g.at, g.tokens = slices.Delete(g.at, i, i+1), slices.Delete(g.tokens, i, i+1)
}

// drawMeter draws an algorithm, and the same by the book as of now.
func drawMeter(t *rapid.T, now Instant) (*rule, refMeter) {
	name := rapid.SampledFrom(algorithmNames()).Draw(t, "algorithm")
	per := rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 7 * time.Second, time.Hour}).Draw(t, "per")
	quota := rapid.SampledFrom([]int64{1, 2, 3, 10, 60}).Draw(t, "quota")
	times := rapid.SampledFrom([]int64{1, 3, 5}).Draw(t, "times")
	r, ref, err := meterModel(name, per, quota, times, now)
	if err != nil {
		t.Fatal(err)
	}
	return r, ref
}

// meterModel compiles an algorithm whose hosts have so many times the quota,
// with the same by the book as of now.
func meterModel(name string, per time.Duration, quota, times int64, now Instant) (*rule, refMeter, error) {
	spec := Rule{Name: "r", Action: StringList{"danmaku"}, Scope: "user", Algorithm: name}
	spec.Rate, spec.Burst, spec.Per = quota, quota, Duration(per)
	if name == concurrencyName {
		spec.Rate = 0
	} else {
		spec.Multiply = map[string]int64{"host": times}
	}
	var faults Faults
	r := compileRule(spec, "", []string{"", "host"}, &faults)
	if err := faults.err(); err != nil {
		return nil, nil, err
	}
	grants := refGrants{quota: quota, length: int64(spec.Per)}
	switch name {
	case fixedWindowName:
		return r, &refFixed{grants}, nil
	case slidingWindowName:
		return r, &refSliding{grants, r.meter.shares(nil).whole}, nil
	case slidingLogName:
		return r, &refLog{grants}, nil
	case concurrencyName:
		return r, &refSlots{refLog{grants}}, nil
	}
	return r, refBucketMeter{newRef(spec.Limit, now)}, nil
}

func TestMetersAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := Instant(rapid.Int64Range(-1e17, 1e17).Draw(t, "start"))
		epoch := now
		r, ref := drawMeter(t, now)
		m := r.meter
		c := make([]int64, m.width())
		m.start(c, epoch)
		at := func() int64 { return int64(now - epoch) }
		t.Repeat(map[string]func(*rapid.T){
			"step": func(t *rapid.T) {
				now = now.Add(rapid.SampledFrom([]time.Duration{1, time.Microsecond, time.Millisecond, 137 * time.Millisecond, time.Second, time.Hour}).Draw(t, "step") * time.Duration(rapid.IntRange(0, 9).Draw(t, "times")))
			},
			"edge": func(t *rapid.T) {
				into := modulo(int64(now), int64(r.spec.Per))
				now = now.Add(time.Duration(int64(r.spec.Per) - into + rapid.Int64Range(-1, 1).Draw(t, "off")))
			},
			"shift": func(*rapid.T) {
				m.shift(c, uint64(now-epoch))
				epoch = now
			},
			"take": func(t *rapid.T) {
				s := m.shares(c)
				class := rapid.IntRange(0, len(s.unit)-1).Draw(t, "class")
				cost := rapid.Int64Range(1, s.most[class]).Draw(t, "cost")
				units := cost * s.unit[class]
				if m.level(c, at()) < units {
					checkWait(t, m, c, at(), units)
					return
				}
				m.take(c, at(), units)
				ref.take(now, tokens(units, s.whole))
			},
			"": func(t *rapid.T) {
				have, want := big.NewRat(m.level(c, at()), m.shares(c).whole), ref.level(now)
				if have.Cmp(want) != 0 {
					t.Fatalf("%s: level %s, want %s", r.spec.Algorithm, have, want)
				}
				if full := want.Cmp(tokens(r.spec.Burst, 1)) == 0; m.full(c, at()) != full {
					t.Fatalf("%s: full is %v", r.spec.Algorithm, !full)
				}
			},
		})
	})
}

// checkWait checks that waiting it out succeeds and one tick less does not.
func checkWait(t interface{ Fatalf(string, ...any) }, m meter, c []int64, at, units int64) {
	wait := int64(m.wait(c, at, units))
	if wait <= 0 || m.level(c, at+wait) < units {
		t.Fatalf("after a wait of %d there are %d units of %d", wait, m.level(c, at+wait), units)
	}
	if m.level(c, at+wait-1) >= units {
		t.Fatalf("a tick before the wait of %d there are %d units of %d", wait, m.level(c, at+wait-1), units)
	}
}

// Readings in any order never take more than the algorithm's bound. A token
// bucket keeps it by the callers' own readings; the others count an old reading
// at the latest instant that was taken at. Slots bound what is held, not what
// is taken.
func TestMetersWithReadingsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, _ := drawMeter(t, 0)
		m := r.meter
		c := make([]int64, m.width())
		m.start(c, 0)
		size := m.shares(c).size
		per := int64(r.spec.Per)
		bucket := r.spec.Algorithm == tokenBucketName || r.spec.Algorithm == leakyBucketName
		taken := map[int64]int64{} // by window
		latest := int64(0)
		for range 50 {
			at := rapid.Int64Range(0, 3*per).Draw(t, "at")
			if m.level(c, at) >= m.shares(c).whole {
				m.take(c, at, m.shares(c).whole)
				latest = max(latest, at)
				if !bucket {
					at = latest
				}
				taken[at/per] += m.shares(c).whole
			}
			if level := m.level(c, 3*per); level < 0 || level > size {
				t.Fatalf("%s: level %d of %d", r.spec.Algorithm, level, size)
			}
		}
		bound := size
		if bucket {
			bound += size // burst + rate*per
		}
		for window, units := range taken {
			if r.spec.Algorithm != concurrencyName && units > bound {
				t.Fatalf("%s: window %d took %d of %d", r.spec.Algorithm, window, units, bound)
			}
		}
	})
}

func TestLeakyBucketPaces(t *testing.T) {
	g := NewGate(mustCompile(t, `rules: [{name: q, action: gift, scope: user, algorithm: leaky_bucket, rate: 3, burst: 4}]`), atZero)
	user := &Subject{Scope: ScopeUser}
	for i, want := range []time.Duration{0, 333333334, 666666667, time.Second} {
		if d := g.Decide(0, &Request{Action: Gift}, user); d.Verdict != Allow || d.Delay != want {
			t.Fatalf("%d: %+v, want a delay of %v", i, d, want)
		}
	}
	if d := g.Decide(0, &Request{Action: Gift}, user); d.Verdict != Reject || d.RetryAfter != 333333334 || d.Delay != 0 {
		t.Fatalf("beyond the queue: %+v", d)
	}
}

// A change of algorithm keeps the tokens, so that no one gains by it.
func TestChangingTheAlgorithmKeepsTheLevel(t *testing.T) {
	const text = `{version: %d, rules: [{name: r, action: gift, scope: user, algorithm: %s, %s}]}`
	numbers := map[string]string{concurrencyName: "burst: 10, per: 1h"}
	version := 0
	load := func(name string) *Rules {
		n := numbers[name]
		if n == "" {
			n = "rate: 10, burst: 10, per: 1h"
		}
		version++
		return mustCompile(t, fmt.Sprintf(text, version, name, n))
	}
	for _, from := range algorithmNames() {
		for _, to := range algorithmNames() {
			g := NewGate(load(from), atZero)
			user := &Subject{Scope: ScopeUser}
			for range 7 {
				g.Decide(0, &Request{Action: Gift}, user)
			}
			g.Swap(load(to))
			admitted := 0
			for g.Decide(0, &Request{Action: Gift}, user).Verdict == Allow {
				admitted++
			}
			if admitted != 3 {
				t.Errorf("%s to %s: %d admitted, want the 3 that were left", from, to, admitted)
			}
		}
	}
}
