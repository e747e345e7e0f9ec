package limit

import (
	"net/http"
	"net/netip"
	"testing"
)

// Case 30: the left-most address is the client's invention.
func TestClientAddr(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"direct client, header ignored", "203.0.113.9:5000", []string{"198.51.100.1"}, "203.0.113.9"},
		{"one proxy", "10.0.0.1:5000", []string{"203.0.113.9"}, "203.0.113.9"},
		{"forged on the left", "10.0.0.1:5000", []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9"},
		{"forged with a trusted address on the left", "10.0.0.1:5000", []string{"10.9.9.9, 203.0.113.9"}, "203.0.113.9"},
		{"two proxies", "10.0.0.1:5000", []string{"1.1.1.1, 203.0.113.9, 10.0.0.2"}, "203.0.113.9"},
		{"several lines are one list", "10.0.0.1:5000", []string{"1.1.1.1", "203.0.113.9", "10.0.0.2"}, "203.0.113.9"},
		{"rubbish stops the walk", "10.0.0.1:5000", []string{"203.0.113.9, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"every hop is trusted", "10.0.0.1:5000", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"no header", "10.0.0.1:5000", nil, "10.0.0.1"},
		{"empty header", "10.0.0.1:5000", []string{""}, "10.0.0.1"},
		{"ports and brackets", "[fd00::1]:5000", []string{"[2001:db8::7]:443"}, "2001:db8::7"},
		{"brackets alone", "[fd00::1]:5000", []string{"[2001:db8::7]"}, "2001:db8::7"},
		{"mapped IPv4 is IPv4", "[::ffff:10.0.0.1]:5000", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"no peer", "@", []string{"203.0.113.9"}, "invalid IP"},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Forwarded-For": c.forwarded}}
		if have := ClientAddr(r, trusted).String(); have != c.want {
			t.Errorf("%s: have %s, want %s", c.name, have, c.want)
		}
	}
}

func FuzzClientAddr(f *testing.F) {
	f.Add("10.0.0.1:1", "1.1.1.1, 203.0.113.9")
	f.Add("10.0.0.1:1", ",,[::1]:x, 10.0.0.2")
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, peer, forwarded string) {
		r := &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": {forwarded}}}
		have := ClientAddr(r, trusted)
		r.Header["X-Forwarded-For"] = []string{"6.6.6.6, " + forwarded}
		// More on the left never changes the answer, unless the walk came to it.
		if more := ClientAddr(r, trusted); more != have && more != netip.MustParseAddr("6.6.6.6") {
			t.Fatalf("have %v, with more on the left %v", have, more)
		}
	})
}
