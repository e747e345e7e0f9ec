package preview

import "encoding/binary"

// The wire form of a Recording, for nodes of the same or a later build:
//
//	magic "lrp" and a version byte
//	base (varint), span, level, flags (1: cut), the four drop counters
//	nodes:  n, then each: length, bytes
//	users:  n, then each: name, address (length, bytes)
//	kinds:  n, then each: node, room, role, route, action, scopes, flags (1: unnamed)
//	events: n, then each: ns since the last, user, kind, conn<<2|verdict, cost, audience since the kind's last (varint)
//	rest:   n, then each: ns since the last, kind, n, cost, audience since the kind's last (varint)
//
// Numbers are unsigned varints unless said otherwise.
const (
	magic       = "lrp"
	wireVersion = 1

	flagCut     = 1
	flagUnnamed = 1
)

// AppendBinary appends the wire form to dst: some ten bytes for a sampled request. The error is always nil; the method
// is an [encoding.BinaryAppender].
func (r *Recording) AppendBinary(dst []byte) ([]byte, error) {
	w := writer{append(append(dst, magic...), wireVersion)}
	w.int(r.base)
	w.uint(uint64(r.span))
	w.uint(uint64(r.level))
	w.flag(r.cut, flagCut)
	for _, n := range []int64{r.dropped.Flood, r.dropped.Thinned, r.dropped.Oldest, r.dropped.Names} {
		w.uint(uint64(n))
	}
	w.uint(uint64(len(r.nodes)))
	for _, name := range r.nodes {
		w.text(name)
	}
	w.uint(uint64(len(r.users)))
	for i := range r.users {
		w.text(r.users[i].Name)
		addr, _ := r.users[i].Addr.MarshalBinary()
		w.text(string(addr))
	}
	w.kinds(r.kinds)
	w.events(r)
	w.rest(r)
	return w.b, nil
}

// MarshalBinary returns the wire form.
func (r *Recording) MarshalBinary() ([]byte, error) { return r.AppendBinary(nil) }

type writer struct{ b []byte }

func (w *writer) uint(n uint64) { w.b = binary.AppendUvarint(w.b, n) }
func (w *writer) int(n int64)   { w.b = binary.AppendVarint(w.b, n) }

func (w *writer) text(s string) {
	w.uint(uint64(len(s)))
	w.b = append(w.b, s...)
}

func (w *writer) flag(on bool, bit uint64) {
	if on {
		w.uint(bit)
		return
	}
	w.uint(0)
}

func (w *writer) kinds(kinds []kind) {
	w.uint(uint64(len(kinds)))
	for i := range kinds {
		k := &kinds[i]
		w.uint(uint64(k.Node))
		w.text(k.Room)
		w.text(k.Role)
		w.text(k.Route)
		w.b = append(w.b, byte(k.Action), k.Scopes)
		w.flag(k.Unnamed, flagUnnamed)
	}
}

func (w *writer) events(r *Recording) {
	last, audience := int64(0), make([]uint32, len(r.kinds))
	w.uint(uint64(len(r.events)))
	for i := range r.events {
		e := &r.events[i]
		w.uint(uint64(int64(e.at) - last))
		w.uint(uint64(e.user))
		w.uint(uint64(e.kind))
		w.uint(uint64(e.conn)<<2 | uint64(e.verdict&3))
		w.uint(uint64(e.cost))
		w.int(int64(e.audience) - int64(audience[e.kind]))
		last, audience[e.kind] = int64(e.at), e.audience
	}
}

func (w *writer) rest(r *Recording) {
	last, audience := int64(0), make([]uint32, len(r.kinds))
	w.uint(uint64(len(r.rest)))
	for i := range r.rest {
		l := &r.rest[i]
		w.uint(uint64(l.at - last))
		w.uint(uint64(l.kind))
		w.uint(uint64(l.n))
		w.uint(l.cost)
		w.int(int64(l.audience) - int64(audience[l.kind]))
		last, audience[l.kind] = l.at, l.audience
	}
}
