package limit

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

// Every fault is listed, each with its path.
func TestFaultsOfASet(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string // paths, each with a part of the problem
	}{
		{"unknown keys", "rulez: []\nrules: [{nam: x}, {limits: 1}]", []string{
			"rulez: no such key", "rules[0].nam: no such key", "rules[1].limits: no such key",
		}},
		{"wrong kinds", "version: soon\nrules: [{rate: 1.5, burst: \"5\", per: 3 days, fold: 7, floor: [1], tiers: {}, name: [a]}]", []string{
			"version: whole number", "rules[0].rate: whole number", "rules[0].burst: whole number",
			"rules[0].per: duration", "rules[0].fold: true or false", "rules[0].floor: a mapping",
			"rules[0].tiers: a list", "rules[0].name: text",
		}},
		{"not YAML", "rules: [", []string{": "}},
		{"not a mapping", "7", []string{": a mapping"}},
		{"a version that leaves no room", "version: 9223372036854775807\nrules: []", []string{"version: 0 to"}},
		{"two documents", "rules: []\n---\nrules: []\n", []string{": more than one document"}},
		{"numbers", `
rules:
  - {name: a, action: danmaku, scope: user, rate: -1, burst: 0, per: 1us}
  - {name: a, action: danmaku, scope: user, rate: 1, burst: 1}
  - {name: b, action: danmaku, scope: user, rate: 999999937, burst: 1000000000000, per: 8784h, multiply: {host: 997}}
  - {name: c, action: danmaku, scope: user, rate: 1, burst: 5, floor: {danmaku: 5, gift: 1}, initial: -3}
  - {name: d, action: danmaku, scope: user, rate: 1, burst: 5, multiply: {host: 0}}
`, []string{
			"rules[0].rate: 0 to", "rules[0].per: 1ms to", "rules[0].burst: 1 to",
			"rules[1].name: taken", "rules[2].burst: exactly", "rules[3].initial: 0 to",
			"rules[3].floor.danmaku: less than", "rules[3].floor.gift: cover", "rules[4].multiply.host: 1 to",
		}},
		{"words", `
rules:
  - {name: "Ä", action: [], scope: planet, algorithm: magic, cost: much, on_outage: pray, grace: 1s, rate: 1, burst: 1}
  - {name: b, action: [danmaku, danmaku, fly, "api:"], scope: conn, cluster: true, exempt: {networks: [10.0.0.0]}, rate: 1, burst: 1}
`, []string{
			"rules[0].name: a-z", "rules[0].action: at least one", "rules[0].scope: one of", "rules[0].cost: 1, value",
			"rules[0].algorithm: one of", "rules[0].on_outage: share", "rules[0].grace: on_outage: open",
			"rules[1].action: twice", "rules[1].action: some of", "rules[1].action: some of",
			"rules[1].exempt.networks[0]: a prefix", "rules[1].cluster: no form",
		}},
		{"algorithms", `
rules:
  - {name: a, action: gift, scope: user, algorithm: fixed_window, rate: 5, burst: 9}
  - {name: b, action: gift, scope: user, algorithm: sliding_log, rate: 5000}
  - {name: c, action: gift, scope: user, algorithm: concurrency, rate: 1, burst: 5000, multiply: {host: 2}}
  - {name: d, action: gift, scope: user, algorithm: leaky_bucket, rate: 0, burst: 1}
  - {name: e, action: gift, scope: user, algorithm: sliding_window, tiers: [{rate: 1, burst: 1}], initial: 1}
  - {name: f, action: gift, scope: user, rate: 1, burst: 1, fold: true, degrade: {rate: 1, burst: 0}}
`, []string{
			"rules[0].burst: leave burst out", "rules[1].rate: at most", "rules[2].rate: no rate",
			"rules[2].multiply: not multiplied", "rules[2].burst: at most", "rules[3].rate: 1 or more",
			"rules[4].initial: token bucket", "rules[4].tiers: only a token bucket", "rules[4].rate: 1 or more",
			"rules[5].fold: not both", "rules[5].degrade.burst: 1 to",
		}},
		{"tiers", `
rules:
  - {name: a, action: gift, scope: room, rate: 1, burst: 1, tiers: [{below: 5, rate: 1, burst: 1}, {below: 5, rate: 1, burst: 0}, {below: 9, rate: 1, burst: 1}]}
`, []string{
			"rules[0].rate: either", "rules[0].tiers[0].below: 10 or more", "rules[0].tiers[1].below: 10 or more",
			"rules[0].tiers[1].burst: 1 to", "rules[0].tiers[2].below: no upper bound",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			have := faultsOf(t, c.text)
			for i, want := range c.want {
				path, part, _ := strings.Cut(want, ": ")
				if i >= len(have) || have[i].Path != path || !strings.Contains(have[i].Problem, part) {
					t.Errorf("fault %d is not %q", i, want)
				}
			}
			if len(have) != len(c.want) {
				t.Errorf("have %d faults, want %d:\n%v", len(have), len(c.want), have)
			}
		})
	}
}

func faultsOf(t *testing.T, text string) Faults {
	spec, err := Parse([]byte(text))
	if err == nil {
		_, err = spec.Compile()
	}
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatalf("error %v, want Faults", err)
	}
	return faults
}

func TestASpecIsBounded(t *testing.T) {
	if _, err := Parse(make([]byte, maxSpecBytes+1)); err == nil {
		t.Error("an endless text was read")
	}
	for _, level := range []string{"[", "{a: ", "- ", "? ", "-\t- "} {
		if _, err := Parse([]byte(strings.Repeat(level, 60_000))); err == nil {
			t.Errorf("a text nested by %q was read", level)
		}
	}
	deep := ""
	for i := range 500 {
		deep += strings.Repeat(" ", i) + "a:\n"
	}
	if _, err := Parse([]byte(deep)); err == nil {
		t.Error("a text nested by indentation was read")
	}
	spec := &Spec{Rules: make([]Rule, maxRules+1)}
	if _, err := spec.Compile(); err == nil {
		t.Error("endless rules were compiled")
	}
}

// What is written can be read again, as YAML and as JSON, and is the same.
func TestSpecRoundTrip(t *testing.T) {
	for _, want := range []*Spec{Default(), mustSpec(t, apiRules), mustSpec(t, rankRules)} {
		asYAML, err := yaml.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{asYAML, asJSON} {
			have, err := Parse(text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if diff := cmp.Diff(want, have); diff != "" {
				t.Fatalf("%s\n%s", diff, text)
			}
		}
	}
}

// The shipped rules are the table of the design.
func TestDefaultIsTheTable(t *testing.T) {
	rules := defaultRulesSet(t)
	staff := map[string]int64{"host": 5, "moderator": 5}
	second := Duration(time.Second)
	for name, want := range map[string]Rule{
		"frame-connection":   {Scope: "conn", Limit: Limit{20, second, 40}, Multiply: staff},
		"danmaku-connection": {Scope: "conn", Limit: Limit{2, second, 5}, Multiply: staff},
		"danmaku-user-room":  {Scope: "user_room", Limit: Limit{1, second, 3}, Multiply: staff, Cluster: true},
		"danmaku-user":       {Scope: "user", Limit: Limit{20, 30 * second, 20}, Multiply: staff, Cluster: true},
		"danmaku-room": {
			Scope:   "room",
			Tiers:   []Tier{{1000, Limit{200, second, 200}}, {10000, Limit{100, second, 100}}, {0, Limit{40, second, 80}}},
			Degrade: &Limit{1000, second, 1000}, Cluster: true, Exempt: Exempt{Roles: StringList{"host", "moderator"}},
		},
		"gift-connection":   {Scope: "conn", Limit: Limit{5, second, 20}, Multiply: staff},
		"gift-network-room": {Scope: "net_room", Limit: Limit{50, second, 200}},
		"like-network-room": {Scope: "net_room", Limit: Limit{1000, second, 2000}, Cost: "count", Fold: true},
		"danmaku-network":   {Scope: "net", Limit: Limit{100, second, 300}, Exempt: Exempt{Roles: StringList{"host", "moderator"}}},
		"danmaku-network-room": {
			Scope: "net_room", Limit: Limit{20, second, 60}, Exempt: Exempt{Roles: StringList{"host", "moderator"}},
		},
		"gift-user":       {Scope: "user", Limit: Limit{5, second, 20}, Multiply: staff, Cluster: true},
		"gift-room":       {Scope: "room", Limit: Limit{500, second, 1000}, Cluster: true},
		"like-connection": {Scope: "conn", Limit: Limit{1, second, 2}, Multiply: staff},
		"like-user":       {Scope: "user", Limit: Limit{20, second, 40}, Cost: "count", Fold: true, Multiply: staff, Cluster: true},
		"like-room":       {Scope: "room", Limit: Limit{5000, second, 10000}, Cost: "count", Fold: true, Cluster: true},
		"connect-address": {Scope: "ip", Limit: Limit{5, second, 50}},
		"connect-network": {Scope: "net", Limit: Limit{50, second, 200}},
		"join-user":       {Scope: "user", Limit: Limit{1, second, 10}, Cluster: true},
		"join-room":       {Scope: "room", Limit: Limit{1000, second, 5000}, Cluster: true},
	} {
		have, ok := rules.Rule(name)
		if !ok {
			t.Errorf("no rule %s", name)
			continue
		}
		want.Name, want.Action, want.Algorithm = name, StringList{name[:strings.Index(name, "-")]}, tokenBucketName
		if want.Cost == "" {
			want.Cost = "1"
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, r := range rules.All() {
		if strings.HasPrefix(r.Name, "default-") {
			t.Errorf("%v are covered by no rule of their own", r.Action)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(string(defaultText))
	f.Add(apiRules)
	f.Add(rankRules)
	f.Add("rules: [{name: a, action: gift, scope: user, rate: 1, burst: 1, per: 1h, <<: *x}]")
	f.Add("a: &a [x, x]\nb: &b [*a, *a]\nrules: [&c {<<: *b, name: x}, {<<: [*c, *c]}, *b]\n")
	f.Add(`{"rules":[{"name":"a","rate":1e400,"burst":99999999999999999999,"name":"b"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := Parse([]byte(text))
		if err != nil {
			return
		}
		rules, err := spec.Compile()
		if err != nil {
			return
		}
		g := NewGate(rules, atZero)
		for action := range actionCount {
			for scope := range scopeCount {
				g.Decide(0, &Request{Action: action, Cost: 3, Role: "host", Room: "demo"}, &Subject{Scope: scope})
			}
		}
	})
}
