package limit

import (
	"runtime"
	"testing"
	"time"
	"unsafe"
)

// Once its subject is bound, a decision of any algorithm allocates nothing,
// admitted or refused, nor does the release of what it took.
func TestNoAlgorithmAllocates(t *testing.T) {
	rules := map[string]string{"tiers": "tiers: [{below: 10, rate: 3, burst: 4}, {rate: 2, burst: 3}]"}
	for _, name := range algorithmNames() {
		rules[name] = "algorithm: " + name + ", rate: 3, burst: 3"
	}
	rules[concurrencyName] = "algorithm: " + concurrencyName + ", burst: 3, per: 1m"
	rules["degrade"] = "rate: 1, burst: 1, degrade: {rate: 1, burst: 1}"
	rules["fold"] = "rate: 1, burst: 3, fold: true, cost: count"
	for name, numbers := range rules {
		g := NewGate(mustCompile(t, "rules: [{name: r, action: like, scope: user, "+numbers+"}]"), atZero)
		user := &Subject{Scope: ScopeUser}
		q := &Request{Action: Like, Cost: 2, Role: "viewer", Room: "demo"}
		now, verdicts := Instant(0), map[Verdict]int{Allow: 0, Degrade: 0, Reject: 0}
		decide := func() {
			for range 5 {
				verdicts[g.Decide(now, q, user).Verdict]++
			}
			g.Release(now, q, user)
			now = now.Add(time.Minute + 700*time.Millisecond)
		}
		g.Decide(now, q, user)
		if n := testing.AllocsPerRun(100, decide); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if verdicts[Allow] == 0 || verdicts[Degrade]+verdicts[Reject] == 0 {
			t.Errorf("%s: %v, want some of each", name, verdicts)
		}
	}
}

// heapBytes is what lives on the heap.
func heapBytes() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// idleUsers returns n users that were asked about something, and the bytes of
// bucket state of each. The first question makes the buckets of every rule.
func idleUsers(g *Gate, n int) (users []Subject, state float64) {
	users = make([]Subject, n)
	before := heapBytes()
	q := &Request{Action: Gift, Cost: 1}
	for i := range users {
		users[i].Scope = ScopeUser
		g.Decide(0, q, &users[i])
	}
	return users, (heapBytes() - before) / float64(n)
}

// Property 5 for a user with all the rules that ship; BenchmarkAMillionIdleUsers
// is the same at full size.
func TestProperty5IdleUsersGoAway(t *testing.T) {
	const n = 200_000
	before := heapBytes()
	users, state := idleUsers(NewGate(defaultRulesSet(t), atZero), n)
	if state > 64 {
		t.Errorf("%.1f bytes of bucket state for an idle user, want at most 64", state)
	}
	for i := range users[:n/2] {
		if !users[i].Full(Instant(time.Minute)) {
			t.Fatal("not full after a minute")
		}
	}
	header := float64(unsafe.Sizeof(Subject{}))
	if rest := (heapBytes()-before)/n - header; rest > state/2+4 {
		t.Errorf("%.1f bytes of state remain when half are found at rest", rest)
	}
	runtime.KeepAlive(users)
	users = nil
	if rest := (heapBytes() - before) / n; rest > 1 {
		t.Errorf("%.1f bytes remain when their owners are dropped", rest)
	}
}

// BenchmarkAMillionIdleUsers reports what each holds on the heap. Run it with
// -benchtime 1x.
func BenchmarkAMillionIdleUsers(b *testing.B) {
	g := NewGate(defaultRulesSet(b), atZero)
	for b.Loop() {
		users, state := idleUsers(g, 1_000_000)
		b.ReportMetric(state, "B/user")
		if state > 64 {
			b.Errorf("%.1f bytes of bucket state for an idle user, want at most 64", state)
		}
		runtime.KeepAlive(users)
	}
}
