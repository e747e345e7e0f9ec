package limit

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Different ids have different keys, one hash tag each, and nothing in a key
// ends the tag, a word or a line early.
func TestSharedKeys(t *testing.T) {
	rule := &Quota{suffix: ":r:b1"}
	seen := map[string]string{}
	check := func(t interface{ Errorf(string, ...any) }, scope Scope, q *Request, id string) {
		if sharedID(scope, q) == "" {
			return // nobody
		}
		key := sharedKey(sharedID(scope, q), rule)
		if was, ok := seen[key]; ok && was != scope.String()+id {
			t.Errorf("%q and %q have the key %q", was, id, key)
		}
		seen[key] = scope.String() + id
		if strings.Count(key, "{") != 1 || strings.Count(key, "}") != 1 || strings.ContainsAny(key, " \r\n\x00*") {
			t.Errorf("%q has the key %q", id, key)
		}
	}
	for _, id := range []string{"u1", "u}1", "{u1}", "u%31", "u 1", "u\n1", "用户", "a/b", "a:b", "", "%", "{}"} {
		check(t, ScopeUser, &Request{User: id}, id)
	}
	rapid.Check(t, func(rt *rapid.T) {
		id := rapid.String().Draw(rt, "id")
		check(rt, ScopeRoom, &Request{Room: id}, id)
		room := rapid.String().Draw(rt, "room")
		check(rt, ScopeUserRoom, &Request{User: id, Room: room}, id+"\x00"+room)
	})
	for _, c := range []struct {
		scope Scope
		q     Request
		want  string
	}{
		{ScopeUser, Request{}, ""},
		{ScopeUserRoom, Request{User: "u"}, ""},
		{ScopeUserRoom, Request{User: "u/x", Room: "r"}, "user_room:u%2Fx/r"},
		{ScopeIP, Request{}, ""},
		{ScopeIP, Request{Addr: netip.MustParseAddr("::ffff:10.1.2.3")}, "ip:10.1.2.3/32"},
		{ScopeNet, Request{Addr: netip.MustParseAddr("2001:db8:1:2::3")}, "net:2001:db8:1::/48"},
		{ScopeNetRoom, Request{Addr: netip.MustParseAddr("10.1.2.3")}, ""},
		{ScopeNetRoom, Request{Room: "r"}, ""},
		{ScopeNetRoom, Request{Addr: netip.MustParseAddr("10.1.2.3"), Room: "r/x"}, "net_room:10.1.2.0/24/r%2Fx"},
		{ScopeKey, Request{Key: "k"}, "key:k"},
		{ScopeGlobal, Request{}, "global"},
	} {
		if have := sharedID(c.scope, &c.q); have != c.want {
			t.Errorf("%s %+v: have %q, want %q", c.scope, c.q, have, c.want)
		}
	}
}

// Every algorithm has a form over all nodes or is refused when it is loaded.
func TestEveryAlgorithmIsShared(t *testing.T) {
	for _, name := range algorithmNames() {
		for _, action := range []string{"danmaku", "join"} {
			spec := Spec{Rules: []Rule{{Name: "r", Action: StringList{action}, Scope: "room", Algorithm: name, Cluster: true, Limit: Limit{Rate: 10, Per: Duration(time.Second), Burst: 10}}}}
			switch name {
			case concurrencyName:
				spec.Rules[0].Rate = 0
			case fixedWindowName, slidingWindowName, slidingLogName:
				spec.Rules[0].Burst = 0
			}
			rules, err := spec.Compile()
			if err != nil {
				if action != "join" {
					t.Errorf("%s of %s: %v", name, action, err)
				}
				continue
			}
			if s := rules.byName["r"].quota; len(s.Terms) != 1 || s.Terms[0].Kind != s.Kind || s.Terms[0].Size != 10*s.Scale {
				t.Errorf("%s of %s: %+v", name, action, s)
			}
		}
	}
}
