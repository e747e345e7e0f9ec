package limit

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const connectRules = `rules: [{name: a, action: connect, scope: ip, rate: 1, burst: 2}]`

func TestTableRefusesTheUnknownWhenFullOfLiveOnes(t *testing.T) {
	g := NewGate(mustCompile(t, connectRules), atZero)
	table := NewTable[int](ScopeIP, 3)
	q := &Request{Action: Connect}
	for key := range 3 {
		e, ok := table.Acquire(0, key)
		if !ok {
			t.Fatalf("no place for key %d", key)
		}
		g.Decide(0, q, &e.Subject)
		table.Release(e)
	}
	if _, ok := table.Acquire(0, 9); ok {
		t.Fatal("a live subject was forgotten for an unknown one")
	}
	e, ok := table.Acquire(0, 1)
	if !ok {
		t.Fatal("a known key was refused")
	}
	defer table.Release(e)
	later := Instant(time.Second)
	if _, ok := table.Acquire(later, 9); !ok {
		t.Fatal("full subjects were not forgotten")
	}
	if kept := table.Sweep(later); kept != 2 {
		t.Fatalf("%d entries remain, want the two that are held", kept)
	}
}

// The model: a table never loses a debt, whatever is asked when.
func TestTableKeepsDebts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, _ := mustSpec(t, connectRules).Compile()
		g := NewGate(rules, atZero)
		table := NewTable[int](ScopeIP, rapid.IntRange(1, 4).Draw(t, "most"))
		refs := map[int]*refBucket{}
		now := Instant(0)
		t.Repeat(map[string]func(*rapid.T){
			"step": func(t *rapid.T) { now = now.Add(drawStep(t)) },
			"ask": func(t *rapid.T) {
				key := rapid.IntRange(0, 5).Draw(t, "key")
				e, ok := table.Acquire(now, key)
				if !ok {
					if refs[key] != nil && floor(refs[key].at(now)) < 2 {
						t.Fatal("a live subject was refused its place")
					}
					return
				}
				if refs[key] == nil {
					refs[key] = newRef(Limit{Rate: 1, Burst: 2}, now)
				}
				want := refs[key].wait(now, tokens(1, 1))
				d := g.Decide(now, &Request{Action: Connect}, &e.Subject)
				if d.RetryAfter != want {
					t.Fatalf("key %d: have %v, want %v", key, d.RetryAfter, want)
				}
				if want == 0 {
					refs[key].spend(tokens(1, 1))
				}
				table.Release(e)
			},
			"sweep": func(*rapid.T) { table.Sweep(now) },
			"": func(t *rapid.T) {
				if table.Len() > table.most {
					t.Fatalf("%d entries of %d", table.Len(), table.most)
				}
			},
		})
	})
}

func mustSpec(t interface{ Fatal(...any) }, text string) *Spec {
	spec, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestPrefixes(t *testing.T) {
	for _, c := range []struct{ addr, host, net string }{
		{"192.0.2.7", "192.0.2.7/32", "192.0.2.0/24"},
		{"::ffff:192.0.2.7", "192.0.2.7/32", "192.0.2.0/24"},
		{"2001:db8:1:2:3::4", "2001:db8:1:2::/64", "2001:db8:1::/48"},
		{"fe80::1%eth0", "fe80::/64", "fe80::/48"},
	} {
		addr := netip.MustParseAddr(c.addr)
		if have := HostPrefix(addr).String(); have != c.host {
			t.Errorf("%s: host %s, want %s", c.addr, have, c.host)
		}
		if have := NetPrefix(addr).String(); have != c.net {
			t.Errorf("%s: net %s, want %s", c.addr, have, c.net)
		}
	}
}
