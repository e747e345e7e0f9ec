package room

import (
	"encoding/json"
	"sync"
	"testing"

	"liveroom/protocol"
)

// event is one event as a client reads it.
type event struct {
	Ev        string
	ID        string
	Code      int
	Reason    string
	From      int64
	Until     int64
	Version   uint64 `json:"gifts_version"`
	Gifts     []protocol.CatalogueGift
	Scope     string
	Rule      string
	MID       string
	Seq, Prev uint64
	Duplicate bool
	Counted   int
	Outcome   string
	Retry     int64 `json:"retry_after_ms"`
	TS        int64
	Text      string
	User      struct{ ID, Name, Role string }
	Gift      string
	Count     int
	People    int
	Combo     int
	Delta     int64
	Total     int64
	Seconds   int
	Title     string
	SlowMode  int64 `json:"slow_mode_ms"`
	Closed    bool
	Pinned    *event
	State     string
	Msg       string
	By        string
	Cause     string
	Released  bool
	Cursor    protocol.Cursor
	Recovered protocol.Recovered
	Room      protocol.RoomState
	Message   *event
	Role      string
	Reply     string
	ReplyTo   *protocol.User `json:"reply_to"`
	Time      int64
}

// fakeSession is a viewer in memory: it reads what conn would write.
type fakeSession struct {
	t testing.TB

	mu       sync.Mutex
	deflated int  // broadcasts whose full form was
	wire     wire // of all broadcasts
	live     lane // Deliver
	own      lane // Control
	opened   lane // Open
	held     lane // Hold
	closed   *protocol.Refusal
	full     bool // nothing more may wait
}

// lane keeps frames as they came and reads them when somebody asks.
type lane struct {
	frames [][]byte
	read   int
	events []event
}

var _ Session = (*fakeSession)(nil)

func (s *fakeSession) add(l *lane, array []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.frames = append(l.frames, array)
}

func (s *fakeSession) Deliver(b *protocol.Broadcast) {
	s.Release()
	s.add(&s.live, b.Full().Payload())
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.FullDeflated() != b.Full() {
		s.deflated++
	}
	s.wire.frames++
	s.wire.danmaku += b.Count(protocol.ClassDanmaku)
	s.wire.plain += b.Full().Len()
	s.wire.deflated += b.FullDeflated().Len()
}

// wire is what broadcasts are on the wire, with and without permessage-deflate.
type wire struct{ frames, danmaku, plain, deflated int }

func (s *fakeSession) deflatedFrames() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deflated
}

// Hold keeps events until something else is sent, as conn does.
func (s *fakeSession) Await(f func()) bool {
	if s.full {
		return false
	}
	f()
	return true
}

// Aside waits, so that a test knows when the answer is there.
func (s *fakeSession) Aside(f func()) bool { return s.Await(f) }

func (s *fakeSession) Hold(events []byte) {
	s.add(&s.held, protocol.NewEventFrame(events).Payload())
}

// Release implements [Session].
func (s *fakeSession) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own.frames = append(s.own.frames, s.held.frames...)
	s.held.frames = nil
}

func (s *fakeSession) Control(events []byte) {
	s.Release()
	s.add(&s.own, protocol.NewEventFrame(events).Payload())
}
func (s *fakeSession) Open(events []byte) {
	s.add(&s.opened, protocol.NewEventFrame(events).Payload())
}

// all returns the events of a kind in a lane; "" for every kind.
func (s *fakeSession) all(l *lane, kind string) []event {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; l.read < len(l.frames); l.read++ {
		var out []event
		if err := json.Unmarshal(l.frames[l.read], &out); err != nil {
			s.t.Errorf("frame does not decode: %v: %s", err, l.frames[l.read])
		}
		l.events = append(l.events, out...)
	}
	return ofKind(l.events, kind)
}

func (s *fakeSession) Close(r protocol.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed == nil {
		s.closed = &r
	}
}

// seen returns the live events of a kind; "" for all.
func (s *fakeSession) seen(kind string) []event { return s.all(&s.live, kind) }

// told returns the events of a kind on the session's own lane.
func (s *fakeSession) told(kind string) []event { return s.all(&s.own, kind) }

// at returns the events of a kind that came with the welcome.
func (s *fakeSession) at(kind string) []event { return s.all(&s.opened, kind) }

func (s *fakeSession) flushes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live.frames)
}

func (s *fakeSession) end() *protocol.Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func ofKind(all []event, kind string) []event {
	if kind == "" {
		return all
	}
	var out []event
	for _, e := range all {
		if e.Ev == kind {
			out = append(out, e)
		}
	}
	return out
}
