package client

import (
	"net"
	"sync/atomic"
)

// reader owns the inbound half of many sessions.
type reader interface {
	// adopt takes over an upgraded socket; early are bytes that came behind the answer to the upgrade. On an error the
	// socket is closed.
	adopt(s *Session, conn net.Conn, early []byte) error
	// Close ends all of it and waits; sessions still open are cut.
	Close()
}

// Readers spreads sessions over several readers.
type Readers struct {
	sinks []*sink
	each  []reader
	next  atomic.Uint32
}

// NewReaders starts n of them. Encrypted sockets need the portable kind.
func NewReaders(n int, seed uint64, encrypted bool) (*Readers, error) {
	r := &Readers{}
	for i := range n {
		k := newSink(seed + uint64(i))
		one, err := newReader(k, encrypted)
		if err != nil {
			r.Close()
			return nil, err
		}
		r.sinks, r.each = append(r.sinks, k), append(r.each, one)
	}
	return r, nil
}

// adopt hands the socket to the next reader.
func (r *Readers) adopt(s *Session, conn net.Conn, early []byte) error {
	i := int(r.next.Add(1)) % len(r.each)
	s.sink = r.sinks[i]
	return r.each[i].adopt(s, conn, early)
}

// visit looks at every sink while it stands still.
func (r *Readers) visit(f func(*sink)) {
	for _, k := range r.sinks {
		k.mu.Lock()
		f(k)
		k.mu.Unlock()
	}
}

// Begin makes t the trial whose messages are looked for; nil ends the last one.
func (r *Readers) Begin(t *Trial) {
	r.visit(func(k *sink) { k.begin(t) })
}

func (r *Readers) Close() {
	for _, one := range r.each {
		one.Close()
	}
}

// Motion returns a function that reports whether danmaku or gifts have arrived since its last call.
func (r *Readers) Motion() func() bool {
	var last int64
	return func() bool {
		now := r.Totals()
		sum := now.Danmaku + now.gifts
		moved := sum != last
		last = sum
		return moved
	}
}

// Likes compares the taps that answers counted with the totals that viewers were shown, over all rooms.
func (r *Readers) Likes(viewers []*Session) (counted, shown int64) {
	all, totals := r.Totals(), map[uint16]int64{}
	visit(viewers, func(v *Session) { totals[v.Room] = max(totals[v.Room], v.likeTotal) })
	for _, n := range totals {
		shown += n
	}
	return all.likes, shown
}

// Totals sums what all sinks have counted.
func (r *Readers) Totals() (sum Counters) {
	r.visit(func(k *sink) { sum.Add(&k.count, 1) })
	return sum
}

// Drain moves what all sinks have measured into sum.
func (r *Readers) Drain(sum *Latencies) {
	r.visit(func(k *sink) {
		if k.trial != nil {
			k.resolve()
		}
		k.lat.MoveTo(sum)
	})
}

// Tables sums close codes and reasons over all sinks.
func (r *Readers) Tables() (closes, reasons map[string]int64) {
	closes, reasons = map[string]int64{}, map[string]int64{}
	r.visit(func(k *sink) {
		for code, n := range k.closes {
			closes[code] += n
		}
		for reason, n := range k.reasons {
			reasons[reason] += n
		}
	})
	return closes, reasons
}

// arrived sums, by attempt, to how many stable sessions the trial's danmaku came.
func (r *Readers) arrived(n int) []uint32 {
	out := make([]uint32, n)
	r.visit(func(k *sink) {
		for i, d := range k.delivered {
			out[i] += d
		}
	})
	return out
}
