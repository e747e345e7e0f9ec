package preview

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"liveroom/limit"
)

// The wire form of a Recording, for nodes of the same or a later build: magic, the length of the traits, these in JSON, then of
// each record the time since the one before, user, kind, n, cost, audience and connection. Numbers are unsigned varints.
const magic = "lrp\x02"

// Bounds of what Decode takes.
const (
	maxWireBytes = 256 << 20
	maxSpan      = 2 * time.Hour
	maxInStep    = 1 << 20
)

// ErrMalformed is returned for bytes that are no Recording.
var ErrMalformed = errors.New("preview: malformed recording")

// MarshalBinary returns the wire form: some ten bytes for a record.
func (r *Recording) MarshalBinary() ([]byte, error) {
	head, err := json.Marshal(r.traits)
	if err != nil {
		return nil, fmt.Errorf("encode a recording: %w", err)
	}
	b := append(binary.AppendUvarint([]byte(magic), uint64(len(head))), head...)
	last := limit.Instant(0)
	for _, e := range r.records {
		for _, n := range [...]uint64{uint64(e.at - last), uint64(e.user), uint64(e.kind), uint64(e.n), uint64(e.cost), uint64(e.audience), uint64(e.conn)} {
			b = binary.AppendUvarint(b, n)
		}
		last = e.at
	}
	return b, nil
}

// Decode reads the wire form. The error wraps ErrMalformed. What it allocates is at most some ten times the input.
func Decode(b []byte) (*Recording, error) {
	malformed := func(what string) (*Recording, error) { return nil, fmt.Errorf("%w: %s", ErrMalformed, what) }
	if len(b) > maxWireBytes || len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return malformed(fmt.Sprintf("want at most %d bytes that begin with %q", maxWireBytes, magic))
	}
	b = b[len(magic):]
	length, size := binary.Uvarint(b)
	if size <= 0 || length > uint64(len(b)-size) {
		return malformed("the length of its traits")
	}
	r := &Recording{}
	if err := json.Unmarshal(b[size:size+int(length)], &r.traits); err != nil {
		return malformed(err.Error())
	}
	if what := r.traits.wrong(); what != "" {
		return malformed(what)
	}
	b = b[size+int(length):]
	last := uint64(0)
	for len(b) > 0 {
		var n [7]uint64
		for i, most := range [...]uint64{
			uint64(r.Span) - last, uint64(len(r.Users)) - 1, uint64(len(r.Kinds)) - 1, maxInStep, math.MaxUint32, math.MaxUint32, math.MaxUint32,
		} {
			v, size := binary.Uvarint(b)
			if size <= 0 || v > most || len(r.Kinds) == 0 {
				return malformed(fmt.Sprintf("field %d of record %d", i, len(r.records)))
			}
			n[i], b = v, b[size:]
		}
		if frame := r.Kinds[n[2]].Action == limit.Frame; n[1] == 0 && frame || n[1] != 0 && n[3] != 1 {
			return malformed(fmt.Sprintf("record %d: frames are one user's, and a user's requests are told one by one", len(r.records)))
		}
		last += n[0]
		r.records = append(r.records, record{
			at: limit.Instant(last), user: uint32(n[1]), kind: uint32(n[2]), n: uint32(n[3]), cost: uint32(n[4]), audience: uint32(n[5]), conn: uint32(n[6]),
		})
	}
	return r, nil
}

// wrong names a trait that no recorder tells; "" when there is none.
func (t *traits) wrong() string {
	switch {
	case t.Span < 0 || t.Span > int64(maxSpan):
		return "span"
	case t.Base > math.MaxInt64-int64(maxSpan) || t.Base < math.MinInt64+int64(maxSpan):
		return "base"
	case t.Level > maxLevel:
		return "level"
	case len(t.Users) == 0:
		return "users"
	}
	for i := range t.Kinds {
		if t.Kinds[i].Action > limit.API {
			return "action"
		}
	}
	return ""
}
