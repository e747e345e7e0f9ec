package limit

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// Property 1 and 2 with real concurrency: all callers share one clock that
// each reads before it asks, so readings arrive in any order.
func TestProperty1ConcurrentCallers(t *testing.T) {
	l := Limit{Rate: 1000, Burst: 7}
	g := NewGate(mustCompile(t, `rules: [{name: r, action: danmaku, scope: room, rate: 1000, burst: 7}]`), atZero)
	room := &Subject{Scope: ScopeRoom}
	var clock atomic.Int64
	admitted := make([][]admission, 8)
	var wg sync.WaitGroup
	for i := range admitted {
		wg.Go(func() {
			for range 4000 {
				now := Instant(clock.Add(int64(10 * time.Microsecond)))
				if d := g.Decide(now, &Request{Action: Danmaku}, room); d.Verdict == Allow {
					admitted[i] = append(admitted[i], admission{now, 1})
				}
			}
		})
	}
	wg.Wait()
	var all []admission
	for _, a := range admitted {
		all = append(all, a...)
	}
	if total := int64(len(all)); total < 300 || total > 7+320 {
		t.Fatalf("admitted %d in 320 ms of 1,000/s with burst 7", total)
	}
	checkWindows(t, l, all)
}

// All or nothing under contention: what the room admitted is exactly what the
// connections admitted.
func TestAllOrNothingConcurrently(t *testing.T) {
	g := NewGate(mustCompile(t, `
rules:
  - {name: c, action: danmaku, scope: conn, rate: 0, burst: 50}
  - {name: r, action: danmaku, scope: room, rate: 0, burst: 300}
`), atZero)
	room := &Subject{Scope: ScopeRoom}
	var allowed atomic.Int64
	var wg sync.WaitGroup
	conns := make([]Subject, 8)
	for i := range conns {
		conns[i].Scope = ScopeConn
		for range 2 {
			wg.Go(func() {
				for range 100 {
					if g.Decide(0, &Request{Action: Danmaku}, &conns[i], room).Verdict == Allow {
						allowed.Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
	if allowed.Load() != 300 {
		t.Fatalf("allowed %d, want 300", allowed.Load())
	}
	left := int64(0)
	for i := range conns {
		for g.Decide(0, &Request{Action: Danmaku}, &conns[i]).Verdict == Allow {
			left++
		}
	}
	if left != 8*50-300 {
		t.Fatalf("connections have %d left, want %d: a refusal by the room cost them", left, 8*50-300)
	}
}

// Swaps under way while callers decide, with subjects in any order.
func TestSwapWhileDeciding(t *testing.T) {
	g := NewGate(defaultRulesSet(t), atZero)
	room, user := &Subject{Scope: ScopeRoom}, &Subject{Scope: ScopeUser}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			conn := &Subject{Scope: ScopeConn}
			for i := range 2000 {
				g.Decide(Instant(i), &Request{Action: Gift}, room, conn, user)
				if i%200 == 0 {
					g.Counts()
				}
				user.Full(Instant(i))
			}
		})
	}
	for version := range int64(200) {
		spec := Default()
		spec.Version = version + 2
		spec.Rules = spec.Rules[version%3:]
		rules, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		g.Swap(rules)
	}
	wg.Wait()
	if g.Rules().Version() != 201 {
		t.Fatalf("version %d", g.Rules().Version())
	}
}

// Property 5: what an idle subject costs, and that asking costs nothing.
func TestProperty5IdleSubjects(t *testing.T) {
	const n = 200_000 // per subject, so as good as a million
	g := NewGate(defaultRulesSet(t), atZero)
	subjects := make([]Subject, n)
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := heap()
	q := &Request{Action: Danmaku}
	for i := range subjects {
		subjects[i].Scope = ScopeUserRoom
		g.Decide(0, q, &subjects[i])
	}
	perSubject := (heap() - before) / n
	header := float64(unsafe.Sizeof(Subject{}))
	t.Logf("a user in a room that has spoken: %.0f B in its owner and %.0f B of state", header, perSubject)
	if perSubject+header > 72 {
		t.Errorf("%.0f bytes for an idle subject, want at most 72", perSubject+header)
	}
	later := Instant(time.Minute)
	for i := range subjects {
		if !subjects[i].Full(later) {
			t.Fatal("an idle subject is not full after a minute")
		}
	}
	if rest := (heap() - before) / n; rest > 1 {
		t.Errorf("%.0f bytes of state remain at rest", rest)
	}
	runtime.KeepAlive(subjects)
}

func TestProperty5ReadsArePure(t *testing.T) {
	g := NewGate(defaultRulesSet(t), atZero)
	user := &Subject{Scope: ScopeUser}
	q := &Request{Action: Gift}
	for range 20 {
		g.Decide(0, q, user)
	}
	for now := Instant(0); now < Instant(200*time.Millisecond); now = now.Add(time.Millisecond) {
		if user.Full(now) {
			t.Fatal("full at ", now)
		}
	}
	if d := g.Decide(Instant(200*time.Millisecond), q, user); d.Verdict != Allow || d.Remaining != 0 {
		t.Fatalf("reading moved the bucket: %+v", d)
	}
}

// Property 6: a hundred reloads at saturation change no admission.
func TestProperty6ReloadAtSaturation(t *testing.T) {
	run := func(reload bool) (admitted int) {
		now := Instant(0)
		g := NewGate(mustCompile(t, gifts(5, 20, 0)), func() Instant { return now })
		user := &Subject{Scope: ScopeUser}
		for i := range 1000 {
			now = now.Add(37 * time.Millisecond)
			if g.Decide(now, &Request{Action: Gift}, user).Verdict == Allow {
				admitted++
			}
			if reload && i%10 == 0 {
				g.Swap(mustCompile(t, gifts(5, 20, int64(i))))
			}
		}
		return admitted
	}
	if have, want := run(true), run(false); have != want {
		t.Fatalf("admitted %d with reloads, %d without", have, want)
	}
}

func gifts(rate, burst, version int64) string {
	return fmt.Sprintf("version: %d\nrules: [{name: g, action: gift, scope: user, rate: %d, burst: %d}]", version, rate, burst)
}

// Property 6 and case 25: lower by ten, raise again; the subject sleeps
// through all of it and still follows each change in its order.
func TestProperty6LowerAndRaise(t *testing.T) {
	now := Instant(0)
	g := NewGate(mustCompile(t, gifts(5, 20, 0)), func() Instant { return now })
	user := &Subject{Scope: ScopeUser}
	g.Decide(0, &Request{Action: Gift}, user)
	g.Decide(0, &Request{Action: Gift}, user)
	g.Swap(mustCompile(t, gifts(5, 2, 1)))
	if d := g.Decide(now, &Request{Action: Gift}, user); d.Verdict != Reject {
		t.Fatalf("two were used of two: %+v", d)
	}
	g.Swap(mustCompile(t, gifts(5, 20, 2)))
	admitted := 0
	for g.Decide(now, &Request{Action: Gift}, user).Verdict == Allow {
		admitted++
	}
	if admitted != 18 {
		t.Fatalf("admitted %d at once, want the 18 of 20 that were not used", admitted)
	}
}

// Case 25: a reload neither refills nor is without effect, and a set that
// arrives late is ignored.
func TestCase25ReloadKeepsLevelsAndCounts(t *testing.T) {
	now := Instant(0)
	g := NewGate(mustCompile(t, gifts(5, 20, 1)), func() Instant { return now })
	user := &Subject{Scope: ScopeUser}
	for range 20 {
		g.Decide(0, &Request{Action: Gift}, user)
	}
	if !g.Swap(mustCompile(t, gifts(1, 5, 3))) {
		t.Fatal("the newer set was ignored")
	}
	if d := g.Decide(0, &Request{Action: Gift}, user); d.Verdict != Reject || d.RetryAfter != time.Second {
		t.Fatalf("after the reload: %+v, want the wait at the new rate", d)
	}
	if g.Swap(mustCompile(t, gifts(1000, 1000, 2))) || g.Rules().Version() != 3 {
		t.Fatal("an older set came into force")
	}
}

// Property 8 and case 31.
func TestProperty8NotAllToldTheSameInstant(t *testing.T) {
	g := NewGate(mustCompile(t, `rules: [{name: r, action: danmaku, scope: room, rate: 200, burst: 1}]`), atZero)
	room := &Subject{Scope: ScopeRoom}
	g.Decide(0, &Request{Action: Danmaku}, room)
	most, told := 0, map[int64]int{}
	for range 1000 {
		d := g.Decide(0, &Request{Action: Danmaku}, room)
		if d.Verdict != Reject || d.RetryAfter != 5*time.Millisecond || d.Rule == "" {
			t.Fatalf("%+v", d)
		}
		wire := Jitter(d.RetryAfter)
		if wire <= d.RetryAfter || wire > d.RetryAfter+minJitter+time.Millisecond {
			t.Fatalf("jitter: %v for %v", wire, d.RetryAfter)
		}
		told[wire.Milliseconds()]++
		most = max(most, told[wire.Milliseconds()])
	}
	if most > 100 {
		t.Fatalf("%d of 1,000 are told the same millisecond", most)
	}
}

func TestJitterBounds(t *testing.T) {
	for _, wait := range []time.Duration{0, 1, time.Second, time.Hour} {
		for range 100 {
			if more := Jitter(wait) - wait; more < time.Millisecond || more > maxJitter+time.Millisecond {
				t.Fatalf("%v for %v", more, wait)
			}
		}
	}
	if Jitter(Never) != Never {
		t.Fatal("Never became a time")
	}
}

// Case 23.
func TestCase23AnOlderReadingMintsNothing(t *testing.T) {
	g := NewGate(mustCompile(t, `rules: [{name: r, action: danmaku, scope: conn, rate: 1, burst: 5}]`), atZero)
	conn := &Subject{Scope: ScopeConn}
	admitted := 0
	for i := range 1000 {
		now := Instant(time.Hour)
		if i%2 == 1 {
			now = now.Add(-time.Minute)
		}
		if g.Decide(now, &Request{Action: Danmaku}, conn).Verdict == Allow {
			admitted++
		}
	}
	if admitted != 5 {
		t.Fatalf("admitted %d, want 5", admitted)
	}
}

// Case 24: one throttled user drains nothing of what it shares.
func TestCase24AThrottledUserDrainsNothingShared(t *testing.T) {
	g := NewGate(mustCompile(t, `
rules:
  - {name: user, action: gift, scope: user, rate: 1, burst: 1}
  - {name: room, action: gift, scope: room, rate: 1, burst: 10}
`), atZero)
	room, one, other := &Subject{Scope: ScopeRoom}, &Subject{Scope: ScopeUser}, &Subject{Scope: ScopeUser}
	for range 20 {
		g.Decide(0, &Request{Action: Gift}, one, room)
	}
	d := g.Decide(0, &Request{Action: Gift}, room)
	if d.Verdict != Allow || d.Remaining != 8 {
		t.Fatalf("after 1 of 20: %+v, want 8 left after this one", d)
	}
	if d := g.Decide(0, &Request{Action: Gift}, other, room); d.Verdict != Allow {
		t.Fatalf("another user: %+v", d)
	}
}

// Case 31: a refusal always has a time to return, never 0.
func TestCase31EveryRefusalHasATime(t *testing.T) {
	g := NewGate(defaultRulesSet(t), atZero)
	conn, user := &Subject{Scope: ScopeConn}, &Subject{Scope: ScopeUser}
	seat, room := &Subject{Scope: ScopeUserRoom}, &Subject{Scope: ScopeRoom}
	for i := range 4000 {
		q := &Request{Action: Action(i % int(API)), Cost: int64(i % 25), Audience: i}
		d := g.Decide(Instant(i), q, conn, user, seat, room)
		if d.Verdict == Reject && (d.RetryAfter <= 0 || d.RetryAfter == Never || d.Rule == "") {
			t.Fatalf("%+v: %+v", q, d)
		}
	}
}

func TestNegativeCostIsAnError(t *testing.T) {
	g := NewGate(defaultRulesSet(t), atZero)
	room := &Subject{Scope: ScopeRoom}
	d := g.Decide(0, &Request{Action: Like, Cost: math.MinInt64}, room)
	if d.Verdict != Invalid || d.Err() != ErrNegativeCost || room.gen != nil {
		t.Fatalf("%+v", d)
	}
}

func TestTwoSubjectsOfOneScopePanic(t *testing.T) {
	g := NewGate(defaultRulesSet(t), atZero)
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	g.Decide(0, &Request{}, &Subject{Scope: ScopeRoom}, &Subject{Scope: ScopeRoom})
}
