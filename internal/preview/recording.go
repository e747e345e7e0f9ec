package preview

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"liveroom/limit"
)

// Recording is a piece of traffic: of one node, or of several after Merge. It is immutable.
type Recording struct {
	// base is the instant that the others count from, in Unix ns; span the length in ns.
	base, span int64
	level      uint32
	cut        bool // the recorders knew, or had forgotten, traffic before it
	dropped    Dropped
	nodes      []string
	users      []user
	kinds      []kind
	events     []event // in order of time; at counts from base
	rest       []load  // in order of time
}

// user is a sampled one.
type user struct {
	Name string
	Addr netip.Addr
}

func (u *user) hash() uint64 { return xxhash.Sum64String(u.Name) }

// kind is what many requests have in common.
type kind struct {
	Node    uint32 // into Recording.nodes
	Room    string
	Role    string
	Route   string
	Action  limit.Action
	Scopes  uint8 // bit 1<<limit.Scope; a room's networks are not replayed
	Unnamed bool  // the gate was not told the user
}

func (k *kind) asked(s limit.Scope) bool { return k.Scopes>>s&1 == 1 }

// load is the requests of everybody not sampled, of one kind within one step.
type load struct {
	at       int64 // start of the step
	kind     uint32
	n        uint32
	cost     uint64
	audience uint32
}

// From returns when it begins, by the recorders' wall clocks at their start.
func (r *Recording) From() time.Time { return time.Unix(0, r.base).UTC() }

// To returns when it ends.
func (r *Recording) To() time.Time { return time.Unix(0, r.base+r.span).UTC() }

// Share returns the share of users whose requests are known one by one.
func (r *Recording) Share() float64 { return share(r.level) }

// Nodes returns the names of the nodes.
func (r *Recording) Nodes() []string { return slices.Clone(r.nodes) }

// Users returns how many users are known one by one.
func (r *Recording) Users() int { return len(r.users) }

// Requests returns how many requests it covers, and how many of them are known one by one.
func (r *Recording) Requests() (all, sampled int64) {
	all = int64(len(r.events))
	for i := range r.rest {
		all += int64(r.rest[i].n)
	}
	return all, int64(len(r.events))
}

// Snapshot returns the whole window up to now.
func (r *Recorder) Snapshot() *Recording { return r.Since(time.Time{}) }

// Since returns the traffic from an instant of the wall clock on, as far as it is still known.
func (r *Recorder) Since(from time.Time) *Recording {
	return r.Between(from, r.at(r.cfg.Clock().Add(1)))
}

// Between returns the traffic in [from, to), as far as it is known; an instant before the Recorder's beginning is taken
// for that. Both are rounded down to a step of 10 ms, but for a to that is still to come.
func (r *Recorder) Between(from, to time.Time) *Recording {
	now := r.cfg.Clock()
	level := r.snapshotLevel(now)
	begin, end := r.instant(from), r.instant(to)
	if end > now {
		end = now.Add(1)
	} else {
		end = r.stepStart(r.stepOf(end))
	}
	parts := make([]part, shardCount)
	begin = max(begin, now.Add(-r.cfg.Window), r.start)
	cut := begin > r.start
	for i := range r.shards {
		parts[i] = r.shards[i].part(r, r.stepStart(r.stepOf(begin)), end)
		if parts[i].from > begin {
			begin, cut = parts[i].from.Add(step-1), true
		}
		level = max(level, parts[i].level)
	}
	begin = r.stepStart(r.stepOf(begin))
	rec := &Recording{
		base: r.wall + int64(begin.Sub(r.start)), span: max(int64(end.Sub(begin)), 0), level: level, cut: cut,
		nodes: []string{r.cfg.Node},
	}
	b := newBuilder(rec)
	for i := range parts {
		b.addPart(r, &parts[i], begin, end)
	}
	b.finish()
	return rec
}

// BetweenAt is what another recorder is asked for by one whose [Recorder.Now] is now: the spans are told by the asker's clock,
// and so is the answer. Two clocks may differ by any time.
func (r *Recorder) BetweenAt(from, to, now time.Time) *Recording {
	ahead := r.Now().Sub(now)
	rec := r.Between(from.Add(ahead), to.Add(ahead))
	rec.base -= int64(ahead)
	return rec
}

// Now is the clock by which traffic is told: that of the wall at the start, moved on by elapsed time alone.
func (r *Recorder) Now() time.Time { return r.at(r.cfg.Clock()) }

// at is the wall clock at an instant, by the one reading that was taken at the start.
func (r *Recorder) at(i limit.Instant) time.Time { return time.Unix(0, r.wall+int64(i.Sub(r.start))) }

func (r *Recorder) instant(t time.Time) limit.Instant {
	d := t.Sub(time.Unix(0, r.wall)) // saturates
	return r.start.Add(d)
}

// part is a shard's traffic, copied under its lock.
type part struct {
	from    limit.Instant
	level   uint32
	dropped Dropped
	people  []person
	kinds   []counted
	events  []event
	counts  []chunk[count]
}

func (s *shard) part(r *Recorder, from, to limit.Instant) part {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := part{from: s.from, level: s.level, dropped: s.dropped, people: slices.Clone(s.people), kinds: slices.Clone(s.kinds)}
	for _, c := range s.events.chunks {
		if c.n > 0 && c.last >= from && c.first < to {
			p.events = append(p.events, c.items[:c.n]...)
		}
	}
	for _, c := range s.counts.chunks {
		if c.n > 0 && c.last >= from && c.first < to {
			p.counts = append(p.counts, *c)
		}
	}
	return p
}

// ErrNothing is returned when there is nothing to merge.
var ErrNothing = errors.New("preview: no recording to merge")

// Merge puts recordings of different nodes together, all told by one clock, see [Recorder.BetweenAt]. It begins where all nodes that were up
// know their traffic and ends where the first one ends; the sampled share is the smallest, the others' further users
// count as unsampled load. The error is ErrNothing.
func Merge(recs ...*Recording) (*Recording, error) {
	if len(recs) == 0 {
		return nil, ErrNothing
	}
	from, to := recs[0].base, recs[0].base+recs[0].span
	level, cut := uint32(0), false
	for _, r := range recs {
		from, to = min(from, r.base), min(to, r.base+r.span)
		level, cut = max(level, r.level), cut || r.cut
	}
	for _, r := range recs {
		if r.cut {
			from = max(from, r.base)
		}
	}
	from = min(from, to)
	out := &Recording{base: from, span: to - from, level: level, cut: cut}
	b := newBuilder(out)
	for _, r := range recs {
		b.addRecording(r)
	}
	b.finish()
	return out, nil
}

// thinned returns the recording at a smaller share.
func (r *Recording) thinned(level uint32) *Recording {
	if level <= r.level {
		return r
	}
	out := &Recording{base: r.base, span: r.span, level: level, cut: r.cut}
	b := newBuilder(out)
	b.addRecording(r)
	b.finish()
	return out
}

func byTime(a, b event) int { return cmp.Compare(a.at, b.at) }
