package limit

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// limitOf renders one rule for gifts that grants n at once by an algorithm.
func limitOf(algorithm string, n, version int64) string {
	numbers := map[string]string{
		tokenBucketName: "rate: 0, burst: %d", leakyBucketName: "rate: 1, per: 1h, burst: %d", concurrencyName: "per: 1h, burst: %d",
	}[algorithm]
	if numbers == "" {
		numbers = "per: 1h, rate: %d"
	}
	return fmt.Sprintf("version: %d\nrules: [{name: g, action: gift, scope: user, algorithm: %s, "+numbers+"}]", version, algorithm, n)
}

// A raised limit admits at once what it is raised by, however exhausted it was;
// a lowered one nothing that was not left. Levels are the new limit less what
// was used, for every algorithm.
func TestRaisingAnExhaustedLimitAdmitsMore(t *testing.T) {
	for _, algorithm := range algorithmNames() {
		rapid.Check(t, func(r *rapid.T) {
			now := Instant(30 * time.Minute)
			most := rapid.Int64Range(1, 20).Draw(r, "limit")
			g := NewGate(mustCompile(t, limitOf(algorithm, most, 0)), func() Instant { return now })
			user := &Subject{Scope: ScopeUser}
			ask := func() bool { return g.Decide(now, &Request{Action: Gift}, user).Verdict == Allow }
			used := int64(0)
			for version := int64(1); version <= 5; version++ {
				for range rapid.IntRange(0, 20).Draw(r, "asked") {
					if ask() {
						used++
					}
				}
				now = now.Add(time.Millisecond)
				most = rapid.Int64Range(1, 40).Draw(r, "new limit")
				if !g.Swap(mustCompile(t, limitOf(algorithm, most, version))) {
					t.Fatal("not swapped")
				}
				if algorithm == tokenBucketName || algorithm == leakyBucketName || algorithm == concurrencyName {
					used = min(used, most) // forgiven beyond the new limit
				}
				want := max(most-used, 0)
				if have := g.Explain(now, &Request{Action: Gift}, user)[0].Level; have != want {
					t.Fatalf("%s: level %d after a change to %d with %d used, want %d", algorithm, have, most, used, want)
				}
				if want == 0 && ask() {
					t.Fatalf("%s: admitted one more after a change to %d with %d used", algorithm, most, used)
				}
			}
		})
	}
}
