package limit

import (
	"strings"
)

// sharedID returns what names a subject to all nodes, "" when the request does
// not say whose bucket it is: nobody's bucket is not a bucket of all nobodies.
func sharedID(scope Scope, q *Request) string {
	id := ""
	switch scope {
	case ScopeUser:
		id = escapeKey(q.User)
	case ScopeUserRoom:
		if q.User == "" || q.Room == "" {
			return ""
		}
		id = escapeKey(q.User) + "/" + escapeKey(q.Room)
	case ScopeRoom:
		id = escapeKey(q.Room)
	case ScopeKey:
		id = escapeKey(q.Key)
	case ScopeNetRoom:
		if !q.Addr.IsValid() || q.Room == "" {
			return ""
		}
		id = NetPrefix(q.Addr).String() + "/" + escapeKey(q.Room)
	case ScopeIP, ScopeNet:
		if !q.Addr.IsValid() {
			return ""
		}
		prefix := HostPrefix(q.Addr)
		if scope == ScopeNet {
			prefix = NetPrefix(q.Addr)
		}
		id = prefix.String()
	case ScopeGlobal:
		return scope.String()
	}
	if id == "" {
		return ""
	}
	return scope.String() + ":" + id
}

// sharedKey returns the store's key of one rule and subject. All rules of one
// subject have the same hash tag, so that a Redis Cluster keeps them together.
func sharedKey(id string, q *Quota) string { return "lr:{" + id + "}" + q.suffix }

// escapeKey writes an id such that it holds no brace, separator, space or
// control character, and such that different ids stay different: what is not
// plain becomes %XX.
func escapeKey(id string) string {
	const hex = "0123456789ABCDEF"
	plain := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			c == '-' || c == '_' || c == '.' || c == '@'
	}
	n := 0
	for i := range len(id) {
		if !plain(id[i]) {
			n++
		}
	}
	if n == 0 {
		return id
	}
	var b strings.Builder
	b.Grow(len(id) + 2*n)
	for i := range len(id) {
		if c := id[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}
