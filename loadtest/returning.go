package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"liveroom/protocol"
)

// returning is a viewer that comes back, as a page does: it goes to a node that its balancer offers, comes back when its socket ends,
// at the time that it was told, and resumes from what it saw last. What it sees it keeps, to be compared with what was admitted. Its
// fields are of the goroutine that run is called on, the last group excepted.
type returning struct {
	room     *busyRoom
	offers   func() string // a node's address for viewers
	figures  *rollingFigures
	speaks   bool   // for its room
	token    string // a guest's
	resumes  map[string]any
	gift     int64          // sequence of the last one seen
	seen     map[string]int // danmaku by mid
	missed   int64          // that it was told of
	unknown  []span         // in which it was told that danmaku are gone
	holes    int64          // of gifts
	twice    int64          // gifts
	left     time.Time      // when its socket ended; zero while it has one
	came     time.Time      // its first welcome, on the server's clock
	lastSeen int64          // ts of the newest danmaku

	out atomic.Pointer[websocket.Conn] // that it speaks through; nil while it has none
}

// span is a time in which danmaku were gone for a viewer, in the server's Unix milliseconds.
type span struct{ from, to int64 }

// busyRoom is a room, and what was admitted to it.
type busyRoom struct {
	name string

	mu       sync.Mutex
	danmaku  map[string]int64       // mid to ts; guarded by mu
	gifts    int64                  // sequence of the last that was acknowledged; guarded by mu
	given    int64                  // guarded by mu
	waits    map[string]chan answer // by id; guarded by mu
	attempts int                    // guarded by mu
}

// answer is an ack.
type answer struct {
	Code int    `json:"code"`
	Mid  string `json:"mid"`
	Seq  int64  `json:"seq"`
	TS   int64  `json:"ts"`
}

// told is what of an event counts here.
type told struct {
	Ev string `json:"ev"`
	ID string `json:"id"`
	answer
	Prev       int64  `json:"prev"`
	Danmaku    int64  `json:"danmaku"`
	Hidden     bool   `json:"hidden"`
	GuestToken string `json:"guest_token"`
	Time       int64  `json:"time"`
	Cursor     struct {
		Gift   int64  `json:"gift"`
		Chat   int64  `json:"chat"`
		Last   string `json:"last"`
		Ledger string `json:"ledger"`
	} `json:"cursor"`
	Recovered struct {
		Gift bool `json:"gift"`
		Chat bool `json:"chat"`
	} `json:"recovered"`
}

// comeBack is how long a viewer waits that was told no time, as after a cut.
const comeBack = time.Second

// run watches until ctx ends.
func (v *returning) run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := v.watch(ctx)
		if v.left.IsZero() { // it was welcomed
			v.left = time.Now()
			v.figures.here.Add(-1)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// watch has one socket, from dial to its end, and returns when to come back.
func (v *returning) watch(ctx context.Context) time.Duration {
	dialing, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ws, res, err := websocket.Dial(dialing, "ws"+strings.TrimPrefix(v.offers(), "http")+"/ws", &websocket.DialOptions{Subprotocols: []string{"liveroom.v1"}})
	if err != nil {
		if ctx.Err() == nil {
			v.figures.end("refused")
		}
		if res != nil && res.Header.Get("Retry-After") != "" {
			return 2 * comeBack
		}
		return comeBack + rand.N(comeBack)
	}
	defer func() { v.out.Store(nil); _ = ws.CloseNow() }()
	ws.SetReadLimit(1 << 20)
	hello := map[string]any{"op": "hello", "id": "h", "room": v.room.name}
	if v.token != "" {
		hello["token"] = v.token
	}
	if v.resumes != nil {
		hello["resume"] = v.resumes
	}
	raw, _ := json.Marshal(hello) // of strings
	if err := ws.Write(ctx, websocket.MessageText, raw); err != nil {
		return comeBack
	}
	for {
		_, frame, err := ws.Read(ctx)
		if err != nil {
			return v.sentAway(ctx, err)
		}
		var events []told
		if err := json.Unmarshal(frame, &events); err != nil {
			v.figures.unreadable.Add(1)
			continue
		}
		for i := range events {
			v.hear(&events[i], ws)
		}
	}
}

// sentAway counts how a socket ended and returns when to come back.
func (v *returning) sentAway(ctx context.Context, err error) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	var closed websocket.CloseError
	if !errors.As(err, &closed) {
		v.figures.end("1006")
		return comeBack + rand.N(comeBack)
	}
	v.figures.end(fmt.Sprint(int(closed.Code)))
	var reason struct {
		In int64 `json:"reconnect_in_ms"`
	}
	if json.Unmarshal([]byte(closed.Reason), &reason) != nil || reason.In <= 0 {
		return comeBack
	}
	return time.Duration(reason.In) * time.Millisecond
}

func (v *returning) hear(e *told, ws *websocket.Conn) {
	switch e.Ev {
	case "welcome":
		v.welcome(e)
		if v.speaks {
			v.out.Store(ws)
		}
	case "ack":
		v.room.answered(e.ID, e.answer)
	case "danmaku":
		if e.Hidden {
			return
		}
		v.seen[e.Mid]++
		v.lastSeen = max(v.lastSeen, e.TS)
		v.resumes["last"] = e.Mid
	case "gift":
		switch {
		case e.Seq <= v.gift:
			v.twice++
			return
		case e.Prev != v.gift:
			v.holes++
		}
		v.gift = e.Seq
		v.resumes["gift"] = e.Seq
	case "missed":
		v.missed += e.Danmaku
	}
}

// welcome begins a visit.
func (v *returning) welcome(e *told) {
	if v.resumes == nil {
		v.came, v.gift = time.UnixMilli(e.Time), e.Cursor.Gift
		v.resumes = map[string]any{"gift": e.Cursor.Gift}
		if e.Cursor.Last != "" {
			v.resumes["last"] = e.Cursor.Last
		}
	} else {
		v.figures.back(time.Since(v.left))
		if !e.Recovered.Chat {
			v.unknown = append(v.unknown, span{v.lastSeen, e.Time})
		}
		if !e.Recovered.Gift {
			v.holes++
			v.gift = e.Cursor.Gift
		}
	}
	v.figures.here.Add(1)
	v.left = time.Time{}
	v.resumes["ledger"] = e.Cursor.Ledger
	if e.GuestToken != "" {
		v.token = e.GuestToken
	}
}

// lost is how many danmaku the viewer was neither shown nor told of, and how many it was told of. until is the server's time up to
// which everything must have arrived.
func (v *returning) lost(until int64) (unannounced, announced int64) {
	v.room.mu.Lock()
	defer v.room.mu.Unlock()
	for mid, ts := range v.room.danmaku {
		if ts <= v.came.UnixMilli() || ts > until || v.seen[mid] > 0 {
			continue
		}
		if v.gone(ts) {
			announced++
		} else {
			unannounced++
		}
	}
	told := min(unannounced, v.missed)
	return unannounced - told, announced + told
}

func (v *returning) gone(ts int64) bool {
	for _, s := range v.unknown {
		if s.from <= ts && ts <= s.to {
			return true
		}
	}
	return false
}

// answered hands an ack to whoever waits for it.
func (r *busyRoom) answered(id string, a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.waits[id]; w != nil {
		delete(r.waits, id)
		w <- a // has room for it
	}
}

// say sends one message through the room's speaker and waits for its ack, sending it again, with the same id, when its socket has
// ended meanwhile: so what is acknowledged is admitted once.
func (r *busyRoom) say(ctx context.Context, by *returning, op protocol.Op) {
	r.mu.Lock()
	r.attempts++
	id := fmt.Sprintf("%c%d", op[0], r.attempts)
	r.mu.Unlock()
	body := map[string]any{"op": op, "id": id}
	if op == protocol.OpGift {
		body["gift"] = "rose"
	} else {
		body["text"] = fmt.Sprintf("%s says %s", r.name, id)
	}
	raw, _ := json.Marshal(body) // of strings
	for ctx.Err() == nil {
		a, ok := r.ask(ctx, by, id, raw)
		switch {
		case !ok || a.Code == 503: // send it again
		case a.Code != 200:
			by.figures.refused.Add(1)
			return
		default:
			r.admitted(op, a)
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// ask sends once, and waits for as long as the socket lives that it was sent through.
func (r *busyRoom) ask(ctx context.Context, by *returning, id string, raw []byte) (answer, bool) {
	ws := by.out.Load()
	if ws == nil {
		return answer{}, false
	}
	heard := make(chan answer, 1)
	r.mu.Lock()
	r.waits[id] = heard
	r.mu.Unlock()
	if ws.Write(ctx, websocket.MessageText, raw) != nil {
		return answer{}, false
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case a := <-heard:
			return a, true
		case <-tick.C:
			if by.out.Load() != ws {
				return answer{}, false
			}
		case <-ctx.Done():
			return answer{}, false
		}
	}
}

func (r *busyRoom) admitted(op protocol.Op, a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if op == protocol.OpGift {
		r.gifts, r.given = max(r.gifts, a.Seq), r.given+1
	} else {
		r.danmaku[a.Mid] = a.TS
	}
}
