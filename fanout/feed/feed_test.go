package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"liveroom/fanout/link"
	"liveroom/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hub is another bus, inside the process: it carries what is said and hears nothing of what is stored.
type hub struct {
	mu   sync.Mutex
	ears []*hubEar
	deaf bool // it loses everything
}

type hubEar struct {
	room  string
	queue chan said
	lost  func()
}

type said struct {
	kind    link.Kind
	payload []byte
	header  nats.Header
}

func (h *hub) Publish(room string, kind link.Kind, payload []byte) error {
	h.say(room, said{kind, payload, nil})
	return nil
}

func (h *hub) say(room string, what said) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.ears {
		if e.room == room && !h.deaf {
			e.queue <- what
		}
	}
}

func (h *hub) Subscribe(room string, take func(link.Kind, []byte, nats.Header), lost func()) (stop func(), err error) {
	e := &hubEar{room, make(chan said, 100), lost}
	h.mu.Lock()
	h.ears = append(h.ears, e)
	h.mu.Unlock()
	go func() {
		for s := range e.queue {
			take(s.kind, s.payload, s.header)
		}
	}()
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ears = slices.DeleteFunc(h.ears, func(other *hubEar) bool { return other == e })
		close(e.queue)
	}, nil
}

func (h *hub) Flush(context.Context) error { return nil }
func (h *hub) Echoes() bool                { return false }

// shelf is a store of one room.
type shelf struct {
	mu       sync.Mutex
	gifts    []protocol.StoredGift
	settings link.Record
	acts     []protocol.StoredAct
	likes    int64
	away     bool
	here     map[string]bool
}

var errAway = errors.New("away")

func (s *shelf) give(event string) (seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var prev uint64
	if n := len(s.gifts); n > 0 {
		prev = s.gifts[n-1].Seq
	}
	s.gifts = append(s.gifts, protocol.StoredGift{Seq: prev + 3, Prev: prev, Event: []byte(event)})
	return prev + 3
}

func (s *shelf) set(payload string) (revision uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings = link.Record{Seq: s.settings.Seq + 1, Data: []byte(payload)}
	return s.settings.Seq
}

func (s *shelf) Open(context.Context, string) (v link.Stored, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return v, errAway
	}
	if n := len(s.gifts); n > 0 {
		v.Gift = s.gifts[n-1].Seq
	}
	v.Revision, v.Likes, v.Settings, v.Acts = s.settings.Seq, s.likes, s.settings, slices.Clone(s.acts)
	if n := len(s.acts); n > 0 {
		v.Act = s.acts[n-1].Seq
	}
	return v, nil
}

func (s *shelf) GiftsAfter(_ context.Context, _ string, after uint64, limit int) (out []protocol.StoredGift, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, errAway
	}
	for _, g := range s.gifts {
		if g.Seq > after && len(out) < limit {
			out = append(out, g)
		}
	}
	return out, nil
}

func (s *shelf) ActsAfter(_ context.Context, _ string, after uint64) (out []protocol.StoredAct, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, errAway
	}
	return slices.DeleteFunc(slices.Clone(s.acts), func(a protocol.StoredAct) bool { return a.Seq <= after }), nil
}

func (s *shelf) SettingsRecord(context.Context, string) (link.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings, nil
}

func (s *shelf) Compare(ctx context.Context, shown map[string]int64) (map[string]link.Seen, error) {
	out := map[string]link.Seen{}
	for room := range shown {
		v, err := s.Open(ctx, room)
		if err != nil {
			return nil, err
		}
		out[room] = v.Seen
	}
	return out, nil
}

func (s *shelf) Enter(room string)           { s.here[room] = true }
func (s *shelf) Leave(room string)           { delete(s.here, room) }
func (*shelf) Take(string, link.Record) bool { return true }
func (*shelf) Shown(string, int64)           {}
func (*shelf) MetGift(uint64)                {}

// notes is a Handler that keeps what it is told.
type notes struct {
	mu   sync.Mutex
	said []string
}

func (n *notes) note(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said = append(n.said, fmt.Sprintf(format, args...))
}

func (n *notes) Message(c protocol.Class, b []byte) { n.note("%s %s", c, b) }
func (n *notes) Gift(g protocol.StoredGift)         { n.note("gift %s %d after %d", g.Event, g.Seq, g.Prev) }
func (n *notes) Likes(total int64)                  { n.note("likes %d", total) }
func (n *notes) Act(a protocol.StoredAct)           { n.note("act %d %s", a.Seq, a.Value) }
func (n *notes) Settings(b []byte, revision uint64) { n.note("settings %s %d", b, revision) }

// take returns what was said since the last call.
func (n *notes) take() string {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	s := fmt.Sprint(n.said)
	n.said = nil
	return s
}

// Two nodes on another bus, which knows nothing of the store: rooms are told the same, in the same order, and what is lost is found.
func TestAnotherBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus, store := &hub{}, &shelf{here: map[string]bool{}}
		var nodes [2]*Feeds
		var heard [2]*notes
		for i := range nodes {
			nodes[i], heard[i] = New(bus, store, time.Second, NewMetrics(nil), slog.New(slog.DiscardHandler)), &notes{}
			s, err := nodes[i].Subscribe(t.Context(), "demo", heard[i])
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := nodes[i].Subscribe(t.Context(), "demo", heard[i]); !errors.Is(err, ErrSubscribed) {
				t.Error("a second subscription:", err)
			}
		}
		expect := func(what, want string) {
			t.Helper()
			for i, n := range heard {
				if got := n.take(); got != want {
					t.Errorf("%s: node %d is told %s, want %s", what, i, got, want)
				}
			}
		}
		publish := func(text string) {
			t.Helper()
			if err := nodes[0].Publish(protocol.ClassDanmaku, "demo", []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		publish("a")
		nodes[1].SayGift("demo", store.give("rose"), false)
		publish("b")
		nodes[1].SayLikes("demo", 7)
		nodes[0].SayLikes("demo", 5) // older
		expect("all of a room", "[danmaku a gift rose 3 after 0 danmaku b likes 7]")

		revision := store.set("title")
		if !nodes[0].Behind("demo", link.Seen{Revision: revision}) {
			t.Error("nobody is behind")
		}
		expect("settings", "[settings title 1]")
		if nodes[0].Behind("demo", link.Seen{Revision: revision}) || nodes[0].Behind("other", link.Seen{Revision: revision}) {
			t.Error("somebody is behind")
		}

		bus.deaf = true
		nodes[0].SayGift("demo", store.give("lost"), false)
		publish("lost too")
		bus.deaf = false
		nodes[0].SayGift("demo", store.give("last"), false)
		expect("what was lost of gifts comes before what follows", "[gift lost 6 after 3 gift last 9 after 6]")

		bus.deaf = true
		nodes[0].SayGift("demo", store.give("silent"), false)
		bus.deaf = false
		expect("nobody hears", "[]")
		if err := nodes[1].Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect("the sweep finds it", "[gift silent 12 after 9]")
		store.give("seen elsewhere")
		nodes[0].Heard("demo", link.Seen{Gift: 15})
		expect("presence finds it", "[gift seen elsewhere 15 after 12]")
		if v := nodes[0].Seen("demo"); v != (link.Seen{Gift: 15, Revision: 1, Likes: 7}) || nodes[0].Seen("other") != (link.Seen{}) {
			t.Errorf("seen %+v", v)
		}
	})
}

// Acts come in their order, each once; what was lost is found by the next one, by its number, or by who has seen more.
func TestActsThatWereLostAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus, store, heard := &hub{}, &shelf{here: map[string]bool{}, acts: []protocol.StoredAct{{Seq: 3, Value: []byte("old")}}}, &notes{}
		f := New(bus, store, time.Second, NewMetrics(nil), slog.New(slog.DiscardHandler))
		s, err := f.Subscribe(t.Context(), "demo", heard)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if o := s.Opening(); len(o.Acts) != 1 || string(o.Acts[0].Value) != "old" {
			t.Errorf("opening %+v", o)
		}
		echo := func(seq, prev uint64, what string) {
			h := nats.Header{}
			h.Set(jetstream.SequenceHeader, fmt.Sprint(seq))
			h.Set(jetstream.LastSequenceHeader, fmt.Sprint(prev))
			bus.say("demo", said{link.KindAct, []byte(what), h})
		}
		keep := func(seq uint64, what string) {
			store.mu.Lock()
			defer store.mu.Unlock()
			store.acts = append(store.acts, protocol.StoredAct{Seq: seq, Value: []byte(what)})
		}
		expect := func(what, want string) {
			t.Helper()
			if got := heard.take(); got != want {
				t.Errorf("%s: told %s, want %s", what, got, want)
			}
		}
		echo(3, 0, "old")
		keep(5, "a")
		echo(5, 3, "a")
		echo(5, 3, "a")
		expect("each once", "[act 5 a]")
		keep(6, "lost")
		keep(8, "next")
		echo(8, 6, "next")
		expect("a hole", "[act 6 lost act 8 next]")
		echo(12, 11, "{}") // alone: what was before it is part of the settings
		expect("those that are gone", "[act 12 {}]")
		keep(13, "silent")
		if !f.Behind("demo", link.Seen{Act: 13}) {
			t.Error("nobody is behind")
		}
		expect("somebody has seen more", "[act 13 silent]")
		store.away = true
		echo(15, 14, "later")
		expect("the store is away", "[]")
		store.away = false
		keep(14, "before")
		keep(15, "later")
		if err := f.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect("it is back", "[act 14 before act 15 later]")
	})
}

// What a stream tells of an atomic batch may not be on disk yet: nobody is shown it before it is said to be, or the next write is told.
func TestABatchIsHeldUntilItIsSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus, store, heard := &hub{}, &shelf{here: map[string]bool{}}, &notes{}
		f := New(bus, store, time.Second, NewMetrics(nil), slog.New(slog.DiscardHandler))
		s, err := f.Subscribe(t.Context(), "demo", heard)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		echo := func(event, batch string) uint64 {
			seq := store.give(event)
			h := nats.Header{}
			h.Set(jetstream.SequenceHeader, fmt.Sprint(seq))
			h.Set(jetstream.LastSequenceHeader, fmt.Sprint(seq-3))
			if batch != "" {
				h.Set(link.BatchHeader, batch)
			}
			bus.say("demo", said{link.KindGift, []byte(event), h})
			return seq
		}
		expect := func(what, want string) {
			t.Helper()
			if got := heard.take(); got != want {
				t.Errorf("%s: told %s, want %s", what, got, want)
			}
		}
		echo("a", "b1")
		echo("b", "b1")
		f.SayLikes("demo", 7)
		expect("not synced", "[likes 7]")
		f.SayGift("demo", 3, true)
		expect("one of two is", "[gift a 3 after 0]")
		f.SayGift("demo", 6, true)
		expect("both are", "[gift b 6 after 3]")
		echo("c", "b2")
		echo("d", "b3")
		expect("the next batch is under way", "[gift c 9 after 6]")
		echo("e", "")
		expect("a write of its own", "[gift d 12 after 9 gift e 15 after 12]")
		echo("f", "b4")
		last := store.give("lost on the way")
		f.SayGift("demo", last, true)
		expect("more than was told", "[gift f 18 after 15 gift lost on the way 21 after 18]")
	})
}

// A gift waits for those before it, and a failure asks for a sweep. A room that opens without its store begins with what comes.
func TestTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus, store, heard := &hub{}, &shelf{here: map[string]bool{}}, &notes{}
		f := New(bus, store, time.Second, NewMetrics(nil), slog.New(slog.DiscardHandler))
		first := store.give("before")
		store.away = true
		s, err := f.Subscribe(t.Context(), "demo", heard)
		if err != nil || s.Opening().Known {
			t.Fatal(err, s.Opening())
		}
		<-f.Soon
		store.away = false
		f.SayGift("demo", first, false)
		f.SayGift("demo", store.give("after"), false)
		if got := heard.take(); got != "[gift after 6 after 3]" {
			t.Error("a room without a cursor is told", got)
		}
		store.away = true
		f.SayGift("demo", store.give("unread"), false)
		if got := heard.take(); got != "[]" {
			t.Error("without the store it is told", got)
		}
		<-f.Soon
		store.away = false
		if err := f.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := heard.take(); got != "[gift unread 9 after 6]" {
			t.Error("later it is told", got)
		}
		s.Close()
		s.Close()
		if len(store.here) != 0 || f.of("demo") != nil {
			t.Errorf("of a room that was left %v is known", store.here)
		}
		f.Close()
		if _, err := f.Subscribe(t.Context(), "demo", heard); !errors.Is(err, link.ErrClosed) {
			t.Error("after closing:", err)
		}
	})
}
