package limit

import (
	"net/netip"
	"testing"
)

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

const rankRules = `
rules:
  - {name: any, action: danmaku, scope: room, rate: 1, burst: 1}
  - {name: any-long, action: danmaku, scope: room, rate: 9, per: 10s, burst: 9}
  - {name: galas, action: danmaku, scope: room, room: "gala-*", rate: 1, burst: 2}
  - {name: gala-vip, action: danmaku, scope: room, room: "gala-*", role: vip, rate: 1, burst: 4}
  - {name: gala-7, action: danmaku, scope: room, room: gala-7, rate: 1, burst: 3}
  - {name: low, action: gift, scope: room, rate: 1, burst: 1}
  - {name: high, action: gift, scope: room, priority: 5, rate: 1, burst: 6}
`

func TestTheMostSpecificRulesApply(t *testing.T) {
	g := NewGate(mustCompile(t, rankRules), atZero)
	for _, c := range []struct {
		q     Request
		rule  string
		burst int64
	}{
		{Request{Room: "demo"}, "any", 1},
		{Request{Room: "gala-1"}, "galas", 2},
		{Request{Room: "gala-1", Role: "vip"}, "gala-vip", 4},
		{Request{Room: "gala-7", Role: "vip"}, "gala-7", 3},
		{Request{Action: Gift, Room: "demo"}, "high", 6},
	} {
		d := g.Decide(0, &c.q, &Subject{Scope: ScopeRoom})
		if d.Rule != c.rule || d.Remaining+1 != c.burst {
			t.Errorf("%+v: decided by %s with %d, want %s with %d", c.q, d.Rule, d.Remaining+1, c.rule, c.burst)
		}
	}
}

func TestEquallySpecificRulesApplyTogether(t *testing.T) {
	g := NewGate(mustCompile(t, rankRules), atZero)
	room := &Subject{Scope: ScopeRoom}
	for now := Instant(0); now < 9e9; now += 1e9 {
		if d := g.Decide(now, &Request{Room: "demo"}, room); d.Verdict != Allow {
			t.Fatalf("at %d: %+v", now, d)
		}
	}
	for range 8 {
		g.Decide(9e9, &Request{Room: "demo"}, room)
	}
	// 0.9/s lags behind 1/s until the long window, too, refuses.
	refused := ""
	for now := Instant(10e9); now < 200e9 && refused == ""; now += 1e9 {
		if d := g.Decide(now, &Request{Room: "demo"}, room); d.Verdict == Reject {
			refused = d.Rule
		}
	}
	if refused != "any-long" {
		t.Fatalf("refused by %q, want the long window", refused)
	}
}

func TestMatchRoom(t *testing.T) {
	for _, c := range []struct {
		pattern, room string
		want          bool
	}{
		{"demo", "demo", true},
		{"demo", "demo2", false},
		{"*", "", true},
		{"gala-*", "gala-", true},
		{"gala-*", "gal", false},
		{"*-live", "a-live", true},
		{"*-live", "-liver", false},
		{"a*b*c", "aXbYbZc", true},
		{"a*b*c", "acb", false},
		{"ab*ba", "aba", false},
	} {
		if have := matchRoom(c.pattern, c.room); have != c.want {
			t.Errorf("%q %q: %v", c.pattern, c.room, have)
		}
	}
}

func TestARouteWithoutRulesIsNotUnlimited(t *testing.T) {
	g := NewGate(mustCompile(t, `
rules:
  - {name: post, action: "api:POST /rooms/{room}/gifts", scope: key, rate: 1, burst: 1}
`), atZero)
	for _, c := range []struct{ route, rule string }{
		{"POST /rooms/{room}/gifts", "post"},
		{"GET /elsewhere", "default-key"},
		{"", "default-key"},
	} {
		key := &Subject{Scope: ScopeKey}
		if d := g.Decide(0, &Request{Action: API, Route: c.route}, key); d.Rule != c.rule {
			t.Errorf("%q decided by %q, want %q", c.route, d.Rule, c.rule)
		}
	}
}

func TestExemptions(t *testing.T) {
	g := NewGate(mustCompile(t, `
rules:
  - {name: r, action: danmaku, scope: room, rate: 0, burst: 1, exempt: {roles: host, users: [u1], networks: [10.0.0.0/8]}}
`), atZero)
	room := &Subject{Scope: ScopeRoom}
	for _, q := range []Request{{Role: "host"}, {User: "u1"}, {Addr: addr("10.1.2.3")}, {Addr: addr("::ffff:10.1.2.3")}} {
		for range 3 {
			if d := g.Decide(0, &q, room); d.Verdict != Allow || d.Rule != "" {
				t.Errorf("%+v: %+v", q, d)
			}
		}
	}
	g.Decide(0, &Request{Addr: addr("11.1.2.3")}, room)
	if d := g.Decide(0, &Request{User: "u2"}, room); d.Verdict != Reject || d.RetryAfter != Never {
		t.Errorf("%+v", d)
	}
	if n := countOf(g, "r", "exempt"); n != 12 {
		t.Errorf("%d exempt", n)
	}
}

func TestFloorsKeepAReserve(t *testing.T) {
	g := NewGate(mustCompile(t, `
rules:
  - {name: r, action: [danmaku, gift], scope: room, rate: 1, burst: 10, floor: {danmaku: 4}}
`), atZero)
	room := &Subject{Scope: ScopeRoom}
	for i := range 6 {
		if d := g.Decide(0, &Request{Action: Danmaku}, room); d.Verdict != Allow || d.Remaining != int64(5-i) {
			t.Fatalf("danmaku %d: %+v", i, d)
		}
	}
	if d := g.Decide(0, &Request{Action: Danmaku}, room); d.Verdict != Reject || d.RetryAfter.Seconds() != 1 {
		t.Fatalf("at the floor: %+v", d)
	}
	for i := range 4 {
		if d := g.Decide(0, &Request{Action: Gift}, room); d.Verdict != Allow {
			t.Fatalf("gift %d of the reserve: %+v", i, d)
		}
	}
	if d := g.Decide(0, &Request{Action: Danmaku}, room); d.RetryAfter.Seconds() != 5 {
		t.Fatalf("after the gifts: %+v", d)
	}
}
