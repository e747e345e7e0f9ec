package limit

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestAShareIsExactlySoMuchOfTheRooms(t *testing.T) {
	spec := Spec{Rules: []Rule{
		{Name: "room", Action: StringList{"danmaku"}, Scope: "room", Tiers: []Tier{{Below: 1000, Limit: Limit{Rate: 200, Burst: 201}}, {Limit: Limit{Rate: 33, Per: Duration(time.Minute), Burst: 3}}}},
		{Name: "vip", Action: StringList{"danmaku", "gift"}, Scope: "room", Room: "vip-*", Limit: Limit{Rate: 1000, Burst: 50}},
		{Name: "share", Action: StringList{"danmaku"}, Scope: "net_room", Share: "20%", Sessions: 3},
		{Name: "vip-share", Action: StringList{"danmaku"}, Scope: "net_room", Room: "vip-*", Share: "7%"},
	}}
	rules, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]Rule{}
	for _, r := range rules.All() {
		have[r.Name] = r
	}
	minutes := Duration(5 * time.Minute)
	if got := have["share"].Tiers; len(got) != 2 || got[0] != (Tier{1000, Limit{40, Duration(time.Second), 41}}) || got[1] != (Tier{0, Limit{33, minutes, 1}}) {
		t.Errorf("share: %+v", got)
	}
	if got := have["vip-share"].Limit; got != (Limit{70, Duration(time.Second), 4}) {
		t.Errorf("vip-share: %+v", got)
	}
	if spec.Rules[2].Rate != 0 || len(spec.Rules[2].Tiers) != 0 {
		t.Errorf("the set was changed: %+v", spec.Rules[2])
	}
	g, s := NewGate(rules, NewClock()), &Subject{Scope: ScopeNetRoom}
	admits := func(crowd int) (n int) {
		q := &Request{Action: Danmaku, Cost: 1, Room: "demo", Addr: netip.MustParseAddr("192.0.2.1"), Audience: 10, Crowd: crowd}
		for range 100 {
			if g.Decide(0, q, s).Verdict == Allow {
				n++
			}
		}
		return n
	}
	if few, many := admits(2), admits(3); few != 100 || many != 41 {
		t.Errorf("of 100 a network of two is let %d, one of three %d", few, many)
	}
}

func TestFaultsOfShares(t *testing.T) {
	const room = "{name: room, action: danmaku, scope: room, rate: 1, burst: 1}"
	for text, want := range map[string]string{
		room + ", {name: a, action: danmaku, scope: net_room, share: 25}":                                                                    `share: want 1% to 99%, have "25"`,
		room + ", {name: a, action: danmaku, scope: net_room, share: 0%}":                                                                    "share: want 1% to 99%",
		room + ", {name: a, action: danmaku, scope: net_room, share: 100%}":                                                                  "share: want 1% to 99%",
		room + ", {name: a, action: danmaku, scope: user, share: 25%}":                                                                       "share: only a token bucket of scope net_room",
		room + ", {name: a, action: danmaku, scope: net_room, algorithm: sliding_log, share: 25%}":                                           "share: only a token bucket",
		room + ", {name: a, action: danmaku, scope: net_room, share: 25%, rate: 1, burst: 1}":                                                "rate: a rule has either rate, per and burst, or a share",
		room + ", {name: a, action: gift, scope: net_room, share: 25%}":                                                                      "share: no rule of scope room for everybody covers gift",
		room + ", {name: two, action: danmaku, scope: room, rate: 1, burst: 1}, {name: a, action: danmaku, scope: net_room, share: 25%}":     "share: want one rule of scope room to be a share of, have room and two",
		"{name: w, action: danmaku, scope: room, algorithm: fixed_window, rate: 1}, {name: a, action: danmaku, scope: net_room, share: 25%}": "share: the room's rule w is no token bucket",
		room + ", {name: a, action: danmaku, scope: net, rate: 1, burst: 1, sessions: 5}":                                                    "sessions: want 0 to 1000000, and only with scope net_room, have 5",
		room + ", {name: a, action: danmaku, scope: net_room, rate: 1, burst: 1, sessions: -1}":                                              "sessions: want 0 to",
	} {
		spec, err := Parse([]byte("rules: [" + text + "]"))
		if err == nil {
			_, err = spec.Compile()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%s\n  %v\n  want %s", text, err, want)
		}
	}
}
