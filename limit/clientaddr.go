package limit

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// maxHops bounds how far ClientAddr walks.
const maxHops = 32

// ClientAddr returns the address of the client. It is the peer of the
// connection, unless that is a trusted proxy: then X-Forwarded-For is walked
// from the right, where each trusted hop has written whom it saw, to the first
// address that is not trusted. What stands left of it is the client's own
// invention. The header of a peer that is not trusted is ignored. The zero
// Addr comes back when r.RemoteAddr is none.
func ClientAddr(r *http.Request, trusted []netip.Prefix) netip.Addr {
	addr, ok := parseHop(r.RemoteAddr)
	if !ok {
		return netip.Addr{}
	}
	lines := r.Header.Values("X-Forwarded-For")
	for range maxHops {
		if !slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(addr) }) {
			break
		}
		hop, rest, found := lastHop(lines)
		if !found {
			break
		}
		next, ok := parseHop(hop)
		if !ok {
			break
		}
		addr, lines = next, rest
	}
	return addr
}

// lastHop cuts the last element off the header's lines, which are one list.
func lastHop(lines []string) (hop string, rest []string, found bool) {
	if len(lines) == 0 {
		return "", nil, false
	}
	last := lines[len(lines)-1]
	i := strings.LastIndexByte(last, ',')
	if i < 0 {
		return last, lines[:len(lines)-1], true
	}
	rest = slices.Clone(lines)
	rest[len(rest)-1] = last[:i]
	return last[i+1:], rest, true
}

// parseHop reads an address with or without a port.
func parseHop(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if addr, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return addr.Unmap().WithZone(""), true
	}
	if pair, err := netip.ParseAddrPort(text); err == nil {
		return pair.Addr().Unmap().WithZone(""), true
	}
	return netip.Addr{}, false
}
