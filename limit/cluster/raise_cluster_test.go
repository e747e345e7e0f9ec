package cluster_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/limit"
)

// Over all nodes, too, a raised limit admits what it was raised by, and a lowered one nothing.
func TestClusterRaisingAnExhaustedLimitAdmitsMore(t *testing.T) {
	for algorithm, numbers := range map[string]string{
		"token_bucket": "rate: 0, burst: %d", "leaky_bucket": "rate: 1, per: 24h, burst: %d", "fixed_window": "per: 24h, rate: %d",
		"sliding_window": "per: 24h, rate: %d", "sliding_log": "per: 24h, rate: %d", "concurrency": "per: 24h, burst: %d",
	} {
		t.Run(algorithm, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rules := func(version, n int) string {
					return fmt.Sprintf("version: %d\nrules:\n  - {name: r, action: danmaku, scope: room, algorithm: %s, cluster: true, "+numbers+"}\n", version, algorithm, n)
				}
				w := newTown(t, 2, rules(1, 10), time.Millisecond)
				defer w.close()
				drain := func() (admitted int) {
					for range 40 {
						for _, n := range w.nodes {
							if n.room("r", 1).Verdict == limit.Allow {
								admitted++
							}
						}
						time.Sleep(50 * time.Millisecond)
					}
					return admitted
				}
				for i, step := range []struct{ most, want int }{{10, 10}, {16, 6}, {12, 0}, {20, 4}} {
					if i > 0 {
						for _, n := range w.nodes {
							n.gate.Swap(mustCompile(t, rules(i+1, step.most)))
						}
					}
					want := step.want
					if last := step.most == 20; last && (algorithm == "token_bucket" || algorithm == "leaky_bucket") {
						want = 8 // what was used beyond 12 is forgiven
					}
					if have := drain(); have != want {
						t.Fatalf("a limit of %d admitted %d, want %d", step.most, have, want)
					}
				}
			})
		})
	}
}
