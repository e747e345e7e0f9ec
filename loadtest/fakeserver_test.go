package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"liveroom/loadtest/internal/client"
	"liveroom/protocol"
)

// fakeServer speaks as much of the contract as the scenarios need: one room per name, no limits but one, every message
// at once.
type fakeServer struct {
	refuse  func(n int64) bool // whether the n-th danmaku is refused; nil: none
	bucket  *sharedBucket      // that danmaku are taken from; nil: none
	dropOne bool               // one viewer misses the third danmaku and the third gift
	swap    bool               // one viewer gets two danmaku in the wrong order
	deflate bool               // every message, for those who take it

	full int64 // more sessions are closed as overloaded; 0: no bound

	danmaku atomic.Int64
	came    atomic.Int64
	seq     atomic.Uint64
	mids    *protocol.MIDs
	wg      sync.WaitGroup

	mu    sync.Mutex
	rooms map[string]*fakeRoom // guarded by mu
}

type fakeRoom struct {
	mu      sync.Mutex // guards the rest and orders what members get
	members map[*fakeMember]struct{}
	likes   int64
	prev    uint64
	held    []byte
}

type fakeMember struct {
	out    chan []byte
	cancel context.CancelFunc
	victim bool
}

// startFake serves f and its metrics until the test ends.
func startFake(t *testing.T, f *fakeServer) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(f.handler())
	t.Cleanup(func() { srv.Close(); f.wg.Wait() })
	return srv
}

// startFakeTLS does so over TLS.
func startFakeTLS(t *testing.T, f *fakeServer) *httptest.Server {
	t.Helper()
	srv := httptest.NewTLSServer(f.handler())
	t.Cleanup(func() { srv.Close(); f.wg.Wait() })
	return srv
}

func (f *fakeServer) handler() http.Handler {
	f.mids, f.rooms = protocol.NewMIDs(), map[string]*fakeRoom{}
	mux := http.NewServeMux()
	mux.HandleFunc("/ws", f.serve)
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# HELP go_goroutines n\ngo_goroutines 10\nprocess_resident_memory_bytes 2e+07\nprocess_cpu_seconds_total 1.5\n"+
			"go_memstats_heap_inuse_bytes 1e6\nliveroom_frames_total{a=\"x y\"} 3\nliveroom_frames_total{a=\"z\"} 4\n")
	})
	mux.HandleFunc("/debug/pprof/heap", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"node":"fake","version":"v0"}`) })
	return mux
}

func (f *fakeServer) room(name string) *fakeRoom {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rooms[name] == nil {
		f.rooms[name] = &fakeRoom{members: map[*fakeMember]struct{}{}}
	}
	return f.rooms[name]
}

func (f *fakeServer) serve(w http.ResponseWriter, r *http.Request) {
	mode := websocket.CompressionDisabled
	if f.deflate {
		mode = websocket.CompressionNoContextTakeover
	}
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{client.Subprotocol}, CompressionMode: mode, CompressionThreshold: 1})
	if err != nil {
		return
	}
	f.wg.Add(1)
	defer f.wg.Done()
	defer c.CloseNow()
	if n := f.came.Add(1); f.full > 0 && n > f.full {
		_ = c.Close(websocket.StatusCode(protocol.CloseOverloaded), "")
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hello, ok := readRequest(ctx, c)
	if !ok || hello.Op != protocol.OpHello {
		return
	}
	m := &fakeMember{out: make(chan []byte, 1<<14), cancel: cancel}
	room := f.room(hello.Room)
	f.wg.Add(1)
	go func() {
		defer f.wg.Done()
		for {
			select {
			case b := <-m.out:
				if c.Write(ctx, websocket.MessageText, protocol.NewEventFrame(b).Payload()) != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	room.join(m, f.dropOne || f.swap)
	defer room.leave(m)
	for {
		req, ok := readRequest(ctx, c)
		if !ok {
			return
		}
		f.handle(room, m, hello, req)
	}
}

func readRequest(ctx context.Context, c *websocket.Conn) (*protocol.Request, bool) {
	_, b, err := c.Read(ctx)
	if err != nil {
		return nil, false
	}
	var req protocol.Request
	return &req, protocol.DecodeRequest(b, &req) == nil
}

func (r *fakeRoom) join(m *fakeMember, dropOne bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.victim = dropOne && len(r.members) == 0
	r.members[m] = struct{}{}
	m.out <- protocol.AppendWelcome(nil, protocol.Welcome{ID: "hello", Node: "fake", Cursor: protocol.Cursor{Gift: r.prev}, Time: time.Now().UnixMilli()})
}

func (r *fakeRoom) leave(m *fakeMember) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.members, m)
}

func (r *fakeRoom) tellLocked(event []byte, except func(*fakeMember) bool) {
	for m := range r.members {
		if except != nil && except(m) {
			continue
		}
		m.out <- event
	}
}

// late tells the victim the third danmaku behind the fourth.
func (r *fakeRoom) late(n int64, event []byte) {
	switch n {
	case 3:
		r.held = event
	case 4:
		r.tellLocked(r.held, func(m *fakeMember) bool { return !m.victim })
	}
}

func (f *fakeServer) handle(r *fakeRoom, m *fakeMember, hello, req *protocol.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now().UnixMilli()
	ack := protocol.Ack{ID: req.ID, Code: protocol.OK, TS: now}
	user := protocol.User{ID: "u"}
	if f.deflate {
		user.Name = strings.Repeat("ha", 50)
	}
	missed := func(third bool) func(*fakeMember) bool {
		return func(m *fakeMember) bool { return m.victim && third }
	}
	switch req.Op {
	case protocol.OpDanmaku:
		n := f.danmaku.Add(1)
		full := f.refuse != nil && f.refuse(n)
		if f.bucket != nil {
			ack.TS, full = f.bucket.take()
		}
		if full {
			ack = protocol.Refuse(req.ID, &protocol.Error{Reason: protocol.ReasonRateLimited, Scope: "room", Rule: "danmaku-room", RetryAfter: time.Second})
			break
		}
		ack.MID = f.mids.Next()
		event := protocol.AppendDanmaku(nil, protocol.Danmaku{MID: ack.MID, User: user, Text: req.Text, TS: ack.TS})
		r.tellLocked(event, missed(n == 3))
		if f.swap {
			r.late(n, event)
		}
	case protocol.OpGift:
		seq := f.seq.Add(1)
		event := protocol.AppendGift(nil, protocol.Gift{User: user, Gift: req.Gift, Count: req.Count, Combo: 1, TS: now})
		ack.Seq, ack.MID = seq, protocol.GiftMID(seq)
		r.tellLocked(protocol.AppendStoredGift(nil, protocol.StoredGift{Seq: seq, Prev: r.prev, Event: event}), missed(seq == 3))
		r.prev = seq
	case protocol.OpLike:
		r.likes += int64(req.Count)
		r.tellLocked(protocol.AppendLike(nil, int64(req.Count), r.likes), nil)
	}
	m.out <- protocol.AppendAck(nil, ack, protocol.English)
}

// sharedBucket is an exact token bucket that several fakes may have in common.
type sharedBucket struct {
	bound

	mu    sync.Mutex
	level int64     // in billionths of a message; guarded by mu
	last  time.Time // guarded by mu
}

func newSharedBucket(b bound) *sharedBucket {
	return &sharedBucket{bound: b, level: b.burst * int64(time.Second), last: time.Now()}
}

// take answers with the instant, in Unix milliseconds, at which it decided.
func (k *sharedBucket) take() (ts int64, refused bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	k.level = min(k.burst*int64(time.Second), k.level+int64(now.Sub(k.last))*k.rate)
	k.last = now
	if k.level < int64(time.Second) {
		return now.UnixMilli(), true
	}
	k.level -= int64(time.Second)
	return now.UnixMilli(), false
}
