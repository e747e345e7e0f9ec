package admit

import (
	"net/netip"
	"testing"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// Where no place is left for an address nobody has judged it: it is told to try later, and gets in once a place is free.
func TestArrivalWithoutAPlace(t *testing.T) {
	gate, now := clocked(t, limit.Rule{
		Name: "arrivals", Action: limit.StringList{limit.Connect.String()}, Scope: limit.ScopeIP.String(), Limit: limit.Limit{Rate: 1, Burst: 10},
	})
	a := NewArrivals(gate)
	a.hosts = limit.NewTable[netip.Prefix](limit.ScopeIP, 1)
	first, err := a.Admit(netip.MustParseAddr("192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Admit(netip.MustParseAddr("198.51.100.1"))
	if err == nil || err.Reason != protocol.ReasonTryLater || err.RetryAfter < time.Second || err.Rule != "" {
		t.Errorf("%+v", err)
	}
	first.Leave()
	*now = now.Add(time.Minute)
	if _, err = a.Admit(netip.MustParseAddr("198.51.100.1")); err != nil {
		t.Errorf("%+v", err)
	}
}
