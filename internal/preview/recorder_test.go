package preview

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"liveroom/limit"
)

// traffic makes observations of many users by itself, without a gate.
type traffic struct {
	now   limit.Instant
	users []string
	rooms []string
}

func newTraffic(users, rooms int) *traffic {
	t := &traffic{}
	for i := range users {
		t.users = append(t.users, fmt.Sprintf("viewer-%d", i))
	}
	for i := range rooms {
		t.rooms = append(t.rooms, fmt.Sprintf("room-%d", i))
	}
	return t
}

func (t *traffic) clock() limit.Instant { return t.now }

func (t *traffic) observed(i int, now limit.Instant) limit.Observed {
	u := i * 7919 % len(t.users)
	return limit.Observed{
		Now: now, Scopes: 1<<limit.ScopeConn | 1<<limit.ScopeUser | 1<<limit.ScopeUserRoom | 1<<limit.ScopeRoom,
		Conn: uintptr(u+1) * 320,
		Request: limit.Request{
			Action: limit.Danmaku, Cost: 1, Role: "viewer", User: t.users[u], Room: t.rooms[u%len(t.rooms)], Audience: len(t.users),
		},
	}
}

func (t *traffic) recorder(window time.Duration, bytes int64) *Recorder {
	return newRecorder("n1", t.clock, epoch, window, bytes)
}

// holds returns how many bytes a recorder holds, and what it could not keep.
func (r *Recorder) holds() (bytes int64, dropped Dropped) {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		bytes += shardBytes + int64(cap(s.records))*recordBytes + s.named
		dropped.add(s.dropped)
		s.mu.Unlock()
	}
	return bytes, dropped
}

// TestMemoryBoundHoldsUnderAFlood: fifteen seconds of 20,000 requests a second from 60,000 users stays within
// the bytes allowed; the share falls, what is not kept is counted, and comes back when the flood is over.
func TestMemoryBoundHoldsUnderAFlood(t *testing.T) {
	const most = 16 << 20
	tr := newTraffic(60_000, 300)
	r := tr.recorder(10*time.Second, most)
	worst := int64(0)
	for i := range 300_000 {
		tr.now += limit.Instant(50 * time.Microsecond)
		r.Observe(tr.observed(i, tr.now))
		if i%30_000 == 0 {
			bytes, _ := r.holds()
			worst = max(worst, bytes)
			if err := r.check(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, dropped := r.holds()
	t.Logf("at most %d of %d bytes, share %v, dropped %+v", worst, most, r.Share(), dropped)
	if worst > most || r.Share() > 0.5 || dropped.Thinned == 0 {
		t.Errorf("at most %d bytes, %+v", worst, dropped)
	}
	rec := r.snapshot()
	all, sampled := rec.requests()
	seconds := time.Duration(rec.Span).Seconds()
	t.Logf("%v s, %d requests, %d of them sampled, %d users", seconds, all, sampled, len(rec.Users)-1)
	if perSecond := float64(all) / seconds; perSecond < 19_000 || perSecond > 21_000 {
		t.Errorf("%.0f requests a second, want 20,000: everybody is counted", perSecond)
	}
	if got := float64(sampled) / float64(all); got < share(rec.Level)*0.8 || got > share(rec.Level)*1.2 {
		t.Errorf("%.4f of the requests are sampled at a share of %.4f", got, share(rec.Level))
	}

	for i := range 40_000 { // 200 s of quiet: ten a second and shard
		tr.now += limit.Instant(5 * time.Millisecond)
		r.Observe(tr.observed(i%500, tr.now))
	}
	if bytes, _ := r.holds(); r.Share() != 1 || bytes > most/8 {
		t.Errorf("after the flood: %d bytes for a share of %v", bytes, r.Share())
	}
	if err := r.check(); err != nil {
		t.Error(err)
	}
}

// check verifies the invariants of every shard.
func (r *Recorder) check() error {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		err := s.checkLocked()
		s.mu.Unlock()
		if err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
	}
	return nil
}

func (s *shard) checkLocked() error {
	named := int64(0)
	for hash, i := range s.users.index {
		p := &s.users.items[i]
		if xxhash.Sum64String(p.Name) != hash {
			return fmt.Errorf("user %q is filed under another hash", p.Name)
		}
		named += p.bytes()
	}
	for k, i := range s.kinds.index {
		named += k.bytes()
		if open := s.kinds.items[i].open; open > s.gone+uint64(len(s.records)) || open > s.gone && s.records[open-s.gone-1].kind != i {
			return fmt.Errorf("kind %+v is counted in record %d, which is not its own", k, open)
		}
	}
	switch {
	case named != s.named:
		return fmt.Errorf("%d bytes of names, accounted %d", named, s.named)
	case len(s.kinds.index)+len(s.kinds.free)+1 != max(len(s.kinds.items), 1):
		return fmt.Errorf("%d kinds and %d free places of %d", len(s.kinds.index), len(s.kinds.free), len(s.kinds.items))
	case len(s.users.index)+len(s.users.free)+1 != max(len(s.users.items), 1):
		return fmt.Errorf("%d users and %d free places of %d", len(s.users.index), len(s.users.free), len(s.users.items))
	}
	return nil
}

// TestOneFloodingUserCostsNobodyElse: what one user does beyond 100 requests a second is load, not history.
func TestOneFloodingUserCostsNobodyElse(t *testing.T) {
	tr := newTraffic(1000, 1)
	r := tr.recorder(20*time.Second, 8<<20)
	for i := range 200_000 { // ten seconds
		tr.now += limit.Instant(50 * time.Microsecond)
		who := 0
		if i%20 == 0 {
			who = i / 20
		}
		r.Observe(tr.observed(who, tr.now))
	}
	if _, dropped := r.holds(); r.Share() != 1 || dropped.Flood < 150_000 || dropped.Thinned != 0 {
		t.Errorf("%v, %+v", r.Share(), dropped)
	}
	if all, _ := r.snapshot().requests(); all != 200_000 {
		t.Errorf("%d requests counted, want all", all)
	}
}

func TestObserveDoesNotAllocateInSteadyState(t *testing.T) {
	tr := newTraffic(200, 5)
	r := tr.recorder(10*time.Second, mostBytes)
	i := 0
	one := func() {
		i++
		tr.now += limit.Instant(500 * time.Microsecond)
		r.Observe(tr.observed(i, tr.now))
	}
	for range 60_000 {
		one()
	}
	if n := testing.AllocsPerRun(20_000, one); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	for name, level := range map[string]int{"all-users-sampled": 0, "none-sampled": maxLevel} {
		b.Run(name, func(b *testing.B) {
			tr := newTraffic(5000, 20)
			r := tr.recorder(10*time.Second, mostBytes)
			r.level.Store(uint32(level))
			var lane atomic.Int64
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				i, now := int(lane.Add(1))*1_000_003, limit.Instant(0)
				for pb.Next() {
					i++
					now += limit.Instant(100 * time.Microsecond)
					r.Observe(tr.observed(i, now))
				}
			})
		})
	}
}

func BenchmarkReplay(b *testing.B) {
	c := newCrowd(b, rules(b, 1, nil), 1, 1000)
	c.run(30*time.Second, 1000, "demo")
	rec := c.rec.snapshot()
	all, _ := rec.requests()
	set := rules(b, 2, nil)
	for b.Loop() {
		Replay(rec, set, set)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(all), "ns/request")
}
