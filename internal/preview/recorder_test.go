package preview

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

func (t *traffic) recorder(tb testing.TB, cfg Config) *Recorder {
	tb.Helper()
	cfg.Node, cfg.Clock = "n1", t.clock
	r, err := NewRecorder(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// TestMemoryBoundHoldsUnderAFlood: fifteen seconds of 20,000 requests a second from 60,000 users stays within
// the bytes allowed; the share falls, what is not kept is counted, and comes back when the flood is over.
func TestMemoryBoundHoldsUnderAFlood(t *testing.T) {
	const most = 16 << 20
	tr := newTraffic(60_000, 300)
	r := tr.recorder(t, Config{MaxBytes: most, Window: 10 * time.Second})
	worst := int64(0)
	for i := range 300_000 {
		tr.now += limit.Instant(50 * time.Microsecond)
		r.Observe(tr.observed(i, tr.now))
		if i%30_000 == 0 {
			worst = max(worst, r.Stats().Bytes)
			if err := r.check(); err != nil {
				t.Fatal(err)
			}
		}
	}
	st := r.Stats()
	t.Logf("at most %d of %d bytes, share %v, dropped %+v", worst, most, st.Share, st.Dropped)
	if worst > most || st.Share > 0.5 || st.Dropped.Thinned == 0 {
		t.Errorf("at most %d bytes, %+v", worst, st)
	}
	rec := r.Snapshot()
	all, sampled := rec.Requests()
	seconds := rec.To().Sub(rec.From()).Seconds()
	t.Logf("%v s, %d requests, %d of them sampled, %d users", seconds, all, sampled, rec.Users())
	if perSecond := float64(all) / seconds; perSecond < 19_000 || perSecond > 21_000 {
		t.Errorf("%.0f requests a second, want 20,000: everybody is counted", perSecond)
	}
	if got := float64(sampled) / float64(all); got < rec.Share()*0.8 || got > rec.Share()*1.2 {
		t.Errorf("%.4f of the requests are sampled at a share of %.4f", got, rec.Share())
	}

	for i := range 40_000 { // 200 s of quiet: ten a second and shard
		tr.now += limit.Instant(5 * time.Millisecond)
		r.Observe(tr.observed(i%500, tr.now))
	}
	if st := r.Stats(); st.Share != 1 {
		t.Errorf("after the flood: %+v", st)
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
	for hash, i := range s.users {
		p := &s.people[i]
		if p.hash != hash {
			return fmt.Errorf("user %q is filed under another hash", p.Name)
		}
		named += personBytes + int64(len(p.Name)) + connBytes*int64(len(p.conns))
	}
	kinds := 0
	for name, at := range s.rooms {
		named += at.bytes()
		for _, i := range at.kinds {
			k := &s.kinds[i]
			if k.Room != name || !k.live {
				return fmt.Errorf("kind %+v is filed under room %q", k.kind, name)
			}
			kinds++
			named += k.bytes()
		}
	}
	switch {
	case named != s.named:
		return fmt.Errorf("%d bytes of names, accounted %d", named, s.named)
	case kinds+len(s.noKind) != len(s.kinds):
		return fmt.Errorf("%d kinds and %d free places of %d", kinds, len(s.noKind), len(s.kinds))
	case len(s.users)+len(s.noUser) != len(s.people):
		return fmt.Errorf("%d users and %d free places of %d", len(s.users), len(s.noUser), len(s.people))
	}
	return nil
}

// TestOneFloodingUserCostsNobodyElse: what one user does beyond 100 requests a second is load, not history.
func TestOneFloodingUserCostsNobodyElse(t *testing.T) {
	tr := newTraffic(1000, 1)
	r := tr.recorder(t, Config{MaxBytes: 8 << 20, Window: 20 * time.Second})
	for i := range 200_000 { // ten seconds
		tr.now += limit.Instant(50 * time.Microsecond)
		who := 0
		if i%20 == 0 {
			who = i / 20
		}
		r.Observe(tr.observed(who, tr.now))
	}
	if st := r.Stats(); st.Share != 1 || st.Dropped.Flood < 150_000 || st.Dropped.Thinned != 0 {
		t.Errorf("%+v", st)
	}
	if all, _ := r.Snapshot().Requests(); all != 200_000 {
		t.Errorf("%d requests counted, want all", all)
	}
}

func TestObserveDoesNotAllocateInSteadyState(t *testing.T) {
	tr := newTraffic(200, 5)
	r := tr.recorder(t, Config{Window: 10 * time.Second})
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

func TestCoarse(t *testing.T) {
	for _, n := range []uint32{0, 1, 2047, 2048, 2049, 10_000, 1_000_000, 1<<32 - 1} {
		if got := fine(coarse(n)); got > n || float64(n-got) > float64(n)/1024 {
			t.Errorf("%d becomes %d", n, got)
		}
	}
}

func TestRecorderConfigNamesEveryFault(t *testing.T) {
	_, err := NewRecorder(Config{Window: time.Second, MaxBytes: 1, Level: 99})
	for _, want := range []string{"node", "clock", "window", "max_bytes", "level"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %s in: %v", want, err)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	for name, level := range map[string]int{"all-users-sampled": 0, "none-sampled": maxLevel} {
		b.Run(name, func(b *testing.B) {
			tr := newTraffic(5000, 20)
			r := tr.recorder(b, Config{Window: 10 * time.Second, Level: level})
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
	c := newCrowd(b, rules(b, 1, nil), 1, 1000, Config{})
	c.run(30*time.Second, 1000, "demo")
	rec := c.rec.Snapshot()
	all, _ := rec.Requests()
	set := rules(b, 2, nil)
	for b.Loop() {
		Replay(rec, set, set)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(all), "ns/request")
}
