package limit

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Places taken are those who are there, after each step: sockets come and go,
// rules with and without places come into force, clocks of callers disagree.
func TestPlacesAreThoseWhoAreThere(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		now, version := Instant(time.Hour), int64(0)
		places := map[Scope]int64{ScopeIP: 2, ScopeNet: 3}
		rules := func() *Rules {
			version++
			text := fmt.Sprintf("version: %d\nrules:\n  - {name: rate, action: connect, scope: ip, rate: 1000000, burst: 1000000}\n", version)
			for scope, n := range places {
				if n > 0 {
					text += fmt.Sprintf("  - {name: held-%s, action: connect, scope: %s, algorithm: concurrency, burst: %d}\n", scope, scope, n)
				}
			}
			return mustCompile(t, text)
		}
		g := NewGate(rules(), func() Instant { return now })
		network := &Subject{Scope: ScopeNet}
		hosts := []*Subject{{Scope: ScopeIP}, {Scope: ScopeIP}}
		type socket struct {
			host  int
			taken Instant
		}
		var open []socket
		q := &Request{Action: Connect}
		live := func(host int) (n int64) {
			for _, s := range open {
				if s.host == host {
					n++
				}
			}
			return n
		}
		r.Repeat(map[string]func(*rapid.T){
			"connect": func(r *rapid.T) {
				host := rapid.IntRange(0, 1).Draw(r, "host")
				at := now.Add(-time.Duration(rapid.IntRange(0, 5).Draw(r, "late"))) // read before a lock was got
				fits := (places[ScopeIP] == 0 || live(host) < places[ScopeIP]) && (places[ScopeNet] == 0 || int64(len(open)) < places[ScopeNet])
				d := g.Decide(at, q, hosts[host], network)
				if (d.Verdict == Allow) != fits {
					r.Fatalf("%v with %d and %d there, places %v", d, live(host), len(open), places)
				}
				if d.Verdict == Allow {
					open = append(open, socket{host, at})
				} else if d.RetryAfter != time.Second {
					r.Fatalf("come back after %v", d.RetryAfter)
				}
			},
			"close": func(r *rapid.T) {
				if len(open) == 0 {
					return
				}
				i := rapid.IntRange(0, len(open)-1).Draw(r, "which")
				s := open[i]
				open = append(open[:i], open[i+1:]...)
				g.Release(s.taken, q, hosts[s.host], network)
			},
			"rules": func(r *rapid.T) {
				places[ScopeIP] = rapid.Int64Range(0, 4).Draw(r, "of an address")
				places[ScopeNet] = rapid.Int64Range(0, 6).Draw(r, "of a network")
				g.Swap(rules())
			},
			"pass": func(r *rapid.T) {
				now = now.Add(time.Duration(rapid.Int64Range(1, int64(48*time.Hour)).Draw(r, "time")))
			},
			"forget": func(*rapid.T) { network.Full(now); hosts[0].Full(now) }, // frees memory, nobody's place
			"reset":  func(*rapid.T) { network.Reset() },
			"": func(r *rapid.T) {
				for _, s := range g.Explain(now, q, hosts[1], network) {
					used := map[string]int64{"held-ip": live(1), "held-net": int64(len(open))}
					if n, ok := used[s.Rule]; ok && s.Level != max(s.Burst-n, 0) {
						r.Fatalf("%s: level %d of %d with %d there", s.Rule, s.Level, s.Burst, n)
					}
				}
			},
		})
	})
}

// What cannot give its places back, or would count the same twice, is refused with its path.
func TestPlacesThatCannotComeBackAreRefused(t *testing.T) {
	for rule, path := range map[string]string{
		`action: [connect, api], scope: ip, burst: 2`:               "rules[0].action",
		`action: [join, danmaku], scope: room, burst: 2`:            "rules[0].action",
		`action: connect, scope: ip, burst: 2, cluster: true`:       "rules[0].cluster",
		`action: join, scope: room, burst: 2, cluster: true`:        "rules[0].cluster",
		`action: join, scope: ip, burst: 2`:                         "rules[0].scope",
		`action: connect, scope: ip, burst: 2, cost: count`:         "rules[0].action",
		`action: connect, scope: ip, burst: 2, multiply: {host: 2}`: "rules[0].multiply",
	} {
		spec, err := Parse([]byte("rules: [{name: r, algorithm: concurrency, " + rule + "}]"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = spec.Compile()
		var faults Faults
		if !errors.As(err, &faults) || !strings.HasPrefix(faults[0].Path, path) {
			t.Errorf("%s: %v", rule, err)
		}
	}
}
