package room

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"liveroom/limit"
	"liveroom/protocol"
)

// CASES 14 in small: rooms that come and go leave nothing behind.
func TestShortRoomsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		bus := newMemoryBus()
		w := newWorld(t, bus, func(c *Config) {
			c.Gate = gateOf(t, unlimited)
			c.Metrics = NewMetrics(reg)
		})
		round := func(n, rooms int) {
			for i := range rooms {
				id := fmt.Sprint("room", n, "-", i)
				v := w.join(id, fmt.Sprint("user", n, "-", i))
				v.say("hello")
				v.like(3)
				v.Leave()
			}
			time.Sleep(3 * time.Minute)
			bus.set(func(b *memoryBus) { clear(b.recent); clear(b.likes); clear(b.shows) })
		}
		heap := func() uint64 {
			for range 3 {
				runtime.GC()
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		round(0, 500)
		base, goroutines := heap(), runtime.NumGoroutine()
		for n := range 4 {
			round(n+1, 500)
		}
		if got := heap(); got > base+base/20+256<<10 {
			t.Errorf("2,500 rooms: heap was %d, is %d", base, got)
		}
		if got := runtime.NumGoroutine(); got > goroutines+restAtMost*runtime.GOMAXPROCS(0) {
			t.Errorf("goroutines were %d, are %d, more than rest", goroutines, got)
		}
		feeds := 0
		bus.set(func(b *memoryBus) { feeds = len(b.feeds) })
		if rooms, users := w.hub.sizes(); rooms+users+feeds != 0 {
			t.Errorf("left are %d rooms, %d users, %d subscriptions", rooms, users, feeds)
		}
		if got := testutil.ToFloat64(w.hub.cfg.Metrics.rooms) + testutil.ToFloat64(w.hub.cfg.Metrics.users); got != 0 {
			t.Errorf("gauges say %v", got)
		}
		w.stop()
	})
}

func TestMetricsAreLintedAndStartAtZero(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	NewMetrics(reg)
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Fatalf("%v, %v", problems, err)
	}
	if n, err := testutil.GatherAndCount(reg, "liveroom_messages_total"); err != nil || n != int(protocol.NumClasses) {
		t.Fatalf("want every class, have %d, %v", n, err)
	}
}

// messages_total counts what was admitted, once; delivery_seconds what was shown, once per flush.
func TestMetricsCountAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		w := newWorld(t, newMemoryBus(), func(c *Config) { c.Metrics = NewMetrics(reg) })
		host := w.join("demo", "host", as(protocol.RoleHost))
		w.join("demo", "b")
		for range 2 {
			host.ask(*danmakuOf("1", "hello"))
			host.give("2", "rose", 5)
		}
		host.like(20)
		host.moderate(protocol.ActionMute, target("b", 60))
		time.Sleep(time.Second)
		for class, want := range map[protocol.Class]float64{
			protocol.ClassDanmaku: 1, protocol.ClassGift: 1, protocol.ClassLike: 1, protocol.ClassControl: 1,
		} {
			if got := testutil.ToFloat64(w.hub.cfg.Metrics.messages[class]); got != want {
				t.Errorf("%s: want %v, have %v", class, want, got)
			}
		}
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "liveroom_delivery_seconds" && f.GetMetric()[0].GetHistogram().GetSampleCount() != 2 {
				t.Errorf("deliveries: %v", f)
			}
		}
		w.stop()
	})
}

// nullSession takes everything and keeps nothing.
type nullSession struct{ delivered int }

func (s *nullSession) Open([]byte)                 {}
func (s *nullSession) Deliver(*protocol.Broadcast) { s.delivered++ }
func (s *nullSession) Control([]byte)              {}
func (s *nullSession) Hold([]byte)                 {}
func (s *nullSession) Await(f func()) bool         { f(); return true }
func (s *nullSession) Aside(f func()) bool         { f(); return true }
func (s *nullSession) Release()                    {}
func (s *nullSession) Close(_ protocol.Refusal)    {}
func (w *world) crowd(room string, n int) []*Member {
	members := make([]*Member, n)
	for i := range members {
		m, refusal := w.hub.Join(w.t.Context(), JoinRequest{
			Session: &nullSession{}, Order: i, Conn: &limit.Subject{Scope: limit.ScopeConn},
			Hello: &protocol.Request{Room: room}, Who: Identity{User: fmt.Sprint(room, "-", i), Role: protocol.RoleViewer},
		})
		if refusal != nil {
			w.t.Fatal(refusal.Reason())
		}
		members[i] = m
	}
	return members
}

func BenchmarkHandleDanmaku(b *testing.B) {
	for name, account := range map[string]string{"plain": "", "account": "since"} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b, newMemoryBus(), func(c *Config) {
				c.Gate = gateOf(b, unlimited)
				c.Bus, c.Account = nullBus{newMemoryBus()}, account
			})
			m := w.join("demo", "u", func(j *JoinRequest) { j.Session, j.Who.Attrs = &nullSession{}, `{"badge":"gold","since":1600000000}` }).Member
			by := &Speaker{who: m.who.Load(), user: m.user, place: m.place, conn: m.conn}
			ids, texts := make([]string, 1<<12), make([]string, 1<<12)
			for i := range ids {
				ids[i], texts[i] = fmt.Sprint("id", i), fmt.Sprint("text number ", i)
			}
			b.ReportAllocs()
			i := 0
			req := &protocol.Request{Op: protocol.OpDanmaku}
			for b.Loop() {
				req.ID, req.Text = ids[i%len(ids)], texts[i%len(ids)]
				if ack := m.room.Handle(b.Context(), by, req); ack.Code != protocol.OK {
					b.Fatal(ack.Err)
				}
				i++
			}
		})
	}
}

// nullBus takes danmaku and forgets them.
type nullBus struct{ *memoryBus }

func (nullBus) Publish(protocol.Class, string, []byte) error { return nil }

// BenchmarkMember reports what a joined, idle session of a user of its own costs here: member, user, place, buckets,
// and its part of the hub's maps.
func BenchmarkMember(b *testing.B) {
	const n = 16_000
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for b.Loop() {
		w := newWorld(b, newMemoryBus(), func(c *Config) {
			spec := limit.Default()
			for i := range spec.Rules {
				if spec.Rules[i].Name == "join-room" {
					spec.Rules[i].Rate, spec.Rules[i].Burst = 1e6, 1e6
				}
			}
			rules, err := spec.Compile()
			if err != nil {
				b.Fatal(err)
			}
			c.Gate = limit.NewGate(rules, limit.NewClock())
		})
		w.crowd("demo", 2000)
		before := heap()
		members := w.crowd("demo2", n)
		b.ReportMetric((heap()-before)/n, "B/member")
		runtime.KeepAlive(members)
	}
}
