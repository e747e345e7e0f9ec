package presence

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"

	"testing"
	"time"

	"go.uber.org/goleak"

	"liveroom/fanout/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nobody has no room open.
type nobody struct{}

func (nobody) Seen(string) link.Seen   { return link.Seen{} }
func (nobody) Heard(string, link.Seen) {}

// alone is a link to a server of its own.
func alone(t *testing.T) *link.Link {
	t.Helper()
	l, err := link.Open(t.Context(), link.Config{
		NodeID: "n1", DataDir: t.TempDir(), DiskMost: 1 << 30, MemoryMost: 1 << 20,
		StoreTimeout: 2 * time.Second, ProbeTimeout: time.Minute, FollowEvery: time.Second, Metrics: link.NewMetrics(nil),
	}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	t.Cleanup(l.Shut)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// announces begins a node whose beats come when they are asked for.
func announces(t *testing.T, l *link.Link, id string, incarnation uint64) *Presence {
	t.Helper()
	p := New(l, Config{NodeID: id, Incarnation: incarnation, Shared: true, AnnounceEvery: time.Hour, NodeTimeout: 3 * time.Hour, Metrics: NewMetrics(nil)}, nobody{})
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-ended })
	return p
}

// has makes the node announce these counts.
func has(p *Presence, rooms map[string]int) {
	p.Announce(func() iter.Seq2[string, Crowd] {
		return func(yield func(string, Crowd) bool) {
			for room, n := range rooms {
				if !yield(room, Crowd{Sessions: n, People: n}) {
					return
				}
			}
		}
	})
}

// eventually asks until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(45 * time.Second); !holds(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("never:", what)
		}
	}
}

// A node that starts knows the others' rooms at once, and one that missed a change asks.
func TestPresenceOfChanges(t *testing.T) {
	l := alone(t)
	n1 := announces(t, l, "n1", 1)
	has(n1, map[string]int{"a": 1, "b": 2})
	n2 := announces(t, l, "n2", 2)
	if err := n2.Meet(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new node knows", func() bool { return n2.Online("a").Sessions == 1 && n2.Online("b").Sessions == 2 })
	has(n1, map[string]int{"b": 3, "c": 4}) // asks for a beat, which says the changes
	eventually(t, "changes arrive", func() bool {
		return n2.Online("a").Sessions == 0 && n2.Online("b").Sessions == 3 && n2.Online("c").Sessions == 4
	})
	n2.roster.mu.Lock()
	p := n2.roster.peers["n1"]
	p.beat-- // as if the last one had been lost
	p.asked = time.Time{}
	n2.roster.changeLocked(p, map[string]announced{"c": {9}})
	n2.roster.mu.Unlock()
	has(n1, map[string]int{"b": 3, "c": 4})
	eventually(t, "the loss is repaired", func() bool { return n2.Online("c").Sessions == 4 })
}

// What presence costs with many rooms: bytes and time for one beat.
func BenchmarkPresence(b *testing.B) {
	const rooms = 10_000
	for name, changed := range map[string]int{"whole": rooms, "tenth": rooms / 10, "quiet": 0} {
		b.Run(name, func(b *testing.B) {
			said, now := map[string]announced{}, map[string]announced{}
			for i := range rooms {
				room, v := fmt.Sprintf("room-%08d", i), announced{int64(i % 500), int64(1_000_000 + i), int64(i), int64(i * 37)}
				said[room] = v
				if i < changed {
					v[3]++
				}
				now[room] = v
			}
			p := &Presence{cfg: Config{NodeID: "n1"}}
			bytes := 0
			for b.Loop() {
				bytes = 0
				parts := cutParts(now, said, false)
				for i, part := range parts {
					bytes += len(encoded(b, announcement{identity: p.identity(), Beat: 1, Part: i, Parts: len(parts), Rooms: part}))
				}
			}
			b.ReportMetric(float64(bytes), "B/beat")
			b.ReportMetric(float64(bytes)/2, "B/s") // a beat each two seconds
		})
	}
}

func encoded(b *testing.B, a announcement) []byte {
	body, err := json.Marshal(a)
	if err != nil {
		b.Fatal(err)
	}
	return body
}

// crowds are samples of a test.
type crowds map[string]string

func (c crowds) Version(room string) uint64 { return uint64(len(c[room])) }
func (c crowds) Sample(room string) []byte  { return []byte(c[room]) }

// Nodes that have a room in common tell one another whom they have in it, and nobody else; a node that goes takes it along.
func TestSamplesOfCommonRooms(t *testing.T) {
	l := alone(t)
	n1, n2 := announces(t, l, "n1", 1), announces(t, l, "n2", 2)
	n1.Sample(crowds{"a": "one", "b": "alone"})
	n2.Sample(crowds{"a": "two"})
	has(n1, map[string]int{"a": 1, "b": 2})
	has(n2, map[string]int{"a": 4})
	sees := func(p *Presence, room string, people int, sample string) func() bool {
		return func() bool {
			p.Soon()
			all, version := p.Elsewhere(room)
			return len(all) == 1 && all[0].People == people && string(all[0].Sample) == sample && version != 0
		}
	}
	eventually(t, "n1 knows whom n2 has", func() bool { n2.Soon(); return sees(n1, "a", 4, "two")() })
	eventually(t, "n2 knows whom n1 has", func() bool { n1.Soon(); return sees(n2, "a", 1, "one")() })
	if all, _ := n2.Elsewhere("b"); len(all) != 1 || all[0].Sample != nil || all[0].People != 2 {
		t.Errorf("of a room that n2 does not have it knows %+v", all)
	}
	n2.Sample(crowds{"a": "three"})
	eventually(t, "n1 hears of the change", func() bool { n2.Soon(); return sees(n1, "a", 4, "three")() })
	if err := n2.Goodbye(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "n2 is gone", func() bool {
		n1.Soon()
		n1.heard.mu.Lock()
		defer n1.heard.mu.Unlock()
		return len(n1.heard.nodes) == 0
	})
}
