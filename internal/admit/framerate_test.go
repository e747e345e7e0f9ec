package admit

import (
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/limit"
	"liveroom/protocol"
)

// socket is a connection with nothing behind it.
type socket struct {
	limits limit.Subject
	abuse  limit.Abuse
}

func (s *socket) Addr() netip.Addr        { return netip.Addr{} }
func (s *socket) Subject() *limit.Subject { return &s.limits }
func (s *socket) Abuse() *limit.Abuse     { return &s.abuse }

// clocked is a gate with these rules, and its clock.
func clocked(t *testing.T, rules ...limit.Rule) (*limit.Gate, *limit.Instant) {
	t.Helper()
	set, err := (&limit.Spec{Rules: rules}).Compile()
	if err != nil {
		t.Fatal(err)
	}
	now := limit.Instant(time.Hour)
	return limit.NewGate(set, func() limit.Instant { return now }), &now
}

// A connection that goes on after its burst is refused, muted after twenty refusals, and ended after twenty more; a frame that
// may pass costs no allocation.
func TestFrames(t *testing.T) {
	gate, now := clocked(t, limit.Rule{
		Name: "frames", Action: limit.StringList{limit.Frame.String()}, Scope: limit.ScopeConn.String(), Limit: limit.Limit{Rate: 1, Burst: 10},
		Exempt: limit.Exempt{Users: []string{"relay"}},
	})
	m := NewFrames(gate, prometheus.NewRegistry())
	s := &socket{limits: limit.Subject{Scope: limit.ScopeConn}}
	said := map[string]int{}
	for range 70 {
		err, refusal := m.Spend(s, "ann", protocol.RoleViewer)
		switch {
		case refusal != nil:
			if refusal.Code != protocol.CloseAbuse || refusal.Reconnect < abuseReconnect {
				t.Fatalf("%+v", refusal)
			}
			said["closed"]++
		case err != nil:
			if err.RetryAfter <= 0 {
				t.Fatalf("%+v names no time", err)
			}
			said[string(err.Reason)]++
		default:
			said["passed"]++
		}
		if said["closed"] > 0 {
			break
		}
	}
	want := map[string]int{"passed": 10, string(protocol.ReasonRateLimited): 19, string(protocol.ReasonMuted): 20, "closed": 1}
	for what, n := range want {
		if said[what] != n {
			t.Errorf("%d are %s, want %d of %v", said[what], what, n, said)
		}
	}
	relay := &socket{limits: limit.Subject{Scope: limit.ScopeConn}}
	if n := testing.AllocsPerRun(1000, func() {
		*now += limit.Instant(time.Second)
		if err, refusal := m.Spend(relay, "relay", protocol.RoleService); err != nil || refusal != nil {
			t.Fatal(err, refusal)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// One network makes new rooms at its rate, another is not hindered, and where rooms are made by hosts alone nobody makes one.
func TestNewRooms(t *testing.T) {
	now := limit.Instant(time.Hour)
	clock := func() limit.Instant { return now }
	rooms, err := LimitNewRooms(clock, true, 2)
	if err != nil {
		t.Fatal(err)
	}
	crowd, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.1")
	made := 0
	for rooms.Admit(crowd) == nil {
		made++
	}
	if made != 2*createBurst {
		t.Errorf("%d rooms at once", made)
	}
	if err := rooms.Admit(netip.MustParseAddr("192.0.2.77")); err == nil || err.Reason != protocol.ReasonRateLimited || err.RetryAfter <= 0 {
		t.Errorf("its neighbour: %v", err)
	}
	if err := rooms.Admit(other); err != nil {
		t.Errorf("another network: %v", err)
	}
	now += limit.Instant(time.Second)
	if err := rooms.Admit(crowd); err != nil {
		t.Errorf("a second later: %v", err)
	}
	closed, err := LimitNewRooms(clock, false, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Admit(other); err == nil || err.Reason != protocol.ReasonNotFound {
		t.Errorf("where nobody may: %v", err)
	}
}
