package preview

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"liveroom/limit"
)

// MaxWireBytes bounds what Decode takes.
const MaxWireBytes = 256 << 20

// Bounds of a Recording that comes over the wire, beyond those that its length gives.
const (
	maxSpan    = 2 * time.Hour
	maxNodes   = 1024
	maxInStep  = 1 << 20
	maxCostSum = 1 << 56
)

// ErrMalformed is returned for bytes that are no Recording.
var ErrMalformed = errors.New("preview: malformed recording")

// Decode reads the wire form. The error wraps ErrMalformed. What it allocates is at most some twenty times the input.
func Decode(b []byte) (*Recording, error) {
	r := reader{b: b}
	if len(b) > MaxWireBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrMalformed, len(b), MaxWireBytes)
	}
	if len(b) < len(magic)+1 || string(b[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: it does not begin with %q", ErrMalformed, magic)
	}
	if v := b[len(magic)]; v != wireVersion {
		return nil, fmt.Errorf("%w: version %d, want %d", ErrMalformed, v, wireVersion)
	}
	r.b = b[len(magic)+1:]
	rec := r.recording()
	if !r.bad && len(r.b) > 0 {
		r.fail("bytes after its end")
	}
	if r.bad {
		return nil, fmt.Errorf("%w: %s", ErrMalformed, r.why)
	}
	return rec, nil
}

type reader struct {
	b   []byte
	bad bool
	why string
}

func (r *reader) fail(why string) {
	if !r.bad {
		r.bad, r.why, r.b = true, why, nil
	}
}

// uint reads a number from 0 to most.
func (r *reader) uint(most uint64, what string) uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || n > most {
		r.fail(what)
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) int(what string) int64 {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		r.fail(what)
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) byte(what string) byte {
	if len(r.b) == 0 {
		r.fail(what)
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

// count reads how many items follow, each of at least size bytes.
func (r *reader) count(size int, what string) int {
	return int(r.uint(uint64(len(r.b)/size), what))
}

func (r *reader) text(most int, what string) string {
	n := int(r.uint(uint64(min(most, len(r.b))), what))
	if n > len(r.b) {
		r.fail(what)
	}
	if r.bad {
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *reader) recording() *Recording {
	rec := &Recording{base: r.int("base"), span: int64(r.uint(uint64(maxSpan), "span"))}
	if rec.base > math.MaxInt64-int64(maxSpan) || rec.base < math.MinInt64+int64(maxSpan) {
		r.fail("base")
	}
	rec.level = uint32(r.uint(maxLevel, "level"))
	rec.cut = r.uint(flagCut, "flags") == flagCut
	for _, n := range []*int64{&rec.dropped.Flood, &rec.dropped.Thinned, &rec.dropped.Oldest, &rec.dropped.Names} {
		*n = int64(r.uint(1<<56, "drop counters"))
	}
	for range r.uint(maxNodes, "nodes") {
		rec.nodes = append(rec.nodes, r.text(maxName, "node"))
		if r.bad {
			return rec
		}
	}
	for range r.count(2, "users") {
		rec.users = append(rec.users, r.user())
		if r.bad {
			return rec
		}
	}
	for range r.count(7, "kinds") {
		rec.kinds = append(rec.kinds, r.kind(rec))
		if r.bad {
			return rec
		}
	}
	r.events(rec)
	r.rest(rec)
	return rec
}

func (r *reader) user() user {
	u := user{Name: r.text(maxName, "user")}
	addr := r.text(64, "address")
	if err := u.Addr.UnmarshalBinary([]byte(addr)); err != nil || u.Name == "" {
		r.fail("user")
	}
	return u
}

func (r *reader) kind(rec *Recording) kind {
	k := kind{
		Node: uint32(r.uint(maxNodes, "kind's node")), Room: r.text(maxName, "room"), Role: r.text(maxName, "role"),
		Route: r.text(maxName, "route"), Action: limit.Action(r.byte("action")), Scopes: r.byte("scopes"),
		Unnamed: r.uint(flagUnnamed, "kind's flags") == flagUnnamed,
	}
	if int(k.Node) >= len(rec.nodes) || k.Action > limit.API {
		r.fail("kind")
	}
	return k
}

func (r *reader) events(rec *Recording) {
	n, last, audience := r.count(6, "events"), int64(0), make([]uint32, len(rec.kinds))
	for range n {
		last += int64(r.uint(uint64(rec.span-last), "event's time"))
		e := event{
			at:   limit.Instant(last),
			user: uint32(r.below(len(rec.users), "event's user")),
			kind: uint32(r.below(len(rec.kinds), "event's kind")),
		}
		who := r.uint(1<<18-1, "event's connection")
		e.conn, e.verdict = uint16(who>>2), uint8(who&3)
		e.cost = uint32(r.uint(math.MaxUint32, "event's cost"))
		e.audience = r.audience(audience, e.kind)
		if r.bad {
			return
		}
		rec.events = append(rec.events, e)
	}
}

func (r *reader) rest(rec *Recording) {
	n, last, audience := r.count(5, "steps"), int64(0), make([]uint32, len(rec.kinds))
	for range n {
		last += int64(r.uint(uint64(rec.span-last), "step's time"))
		l := load{
			at:   last,
			kind: uint32(r.below(len(rec.kinds), "step's kind")),
			n:    uint32(r.uint(maxInStep, "step's count")),
			cost: r.uint(maxCostSum, "step's cost"),
		}
		l.audience = r.audience(audience, l.kind)
		if r.bad {
			return
		}
		rec.rest = append(rec.rest, l)
	}
}

// below reads an index into a table.
func (r *reader) below(size int, what string) uint64 {
	if size == 0 {
		r.fail(what)
		return 0
	}
	return r.uint(uint64(size-1), what)
}

func (r *reader) audience(last []uint32, kind uint32) uint32 {
	n := r.int("audience")
	if r.bad {
		return 0
	}
	if n < -math.MaxUint32 || n > math.MaxUint32 {
		r.fail("audience")
		return 0
	}
	sum := int64(last[kind]) + n
	if sum < 0 || sum > math.MaxUint32 {
		r.fail("audience")
		return 0
	}
	last[kind] = uint32(sum)
	return uint32(sum)
}
