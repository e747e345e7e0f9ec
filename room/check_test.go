package room

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"liveroom/protocol"
)

// check returns what is wrong with the hub's books.
func (h *Hub) check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	members := map[*User]int{}
	for id, r := range h.rooms {
		if r.id != id {
			return fmt.Errorf("room %s stands under %s", r.id, id)
		}
		if err := r.check(members); err != nil {
			return fmt.Errorf("room %s: %w", id, err)
		}
		if _, idle := h.idleRooms[r]; !idle && r.refs == 0 && !r.retiring {
			return fmt.Errorf("room %s is idle and nobody looks", id)
		}
	}
	for id, u := range h.users {
		if u.id != id || u.refs < members[u] {
			return fmt.Errorf("user %s: %d members, %d references", id, members[u], u.refs)
		}
		if _, idle := h.idleUsers[u]; !idle && u.refs == 0 {
			return fmt.Errorf("user %s is idle and nobody looks", id)
		}
	}
	return nil
}

// check returns what is wrong with the room; members counts its members by user.
func (r *Room) check(members map[*User]int) error {
	in := r.audience.Where(func(*Member) bool { return true })
	for _, m := range in {
		members[m.user]++
		if m.left.Load() && r.refs == 0 {
			return fmt.Errorf("member of %s has left and is still there", m.user.id)
		}
	}
	online, here, _ := r.audience.Counts()
	switch {
	case r.refs < len(in):
		return fmt.Errorf("%d members, %d references", len(in), r.refs)
	case here != len(in):
		return fmt.Errorf("%d members, counted %d", len(in), here)
	case r.Online() != online:
		return fmt.Errorf("online is %d, the gate hears %d", online, r.Online())
	}
	return nil
}

// sizes returns how many rooms and users the hub remembers.
func (h *Hub) sizes() (rooms, users int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.rooms), len(h.users)
}

// eventually waits for what other goroutines are about to bring.
func eventually(t testing.TB, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatal("did not come")
		}
		runtime.Gosched()
	}
}

func danmakuOf(id, text string) *protocol.Request {
	return &protocol.Request{Op: protocol.OpDanmaku, ID: id, Text: text}
}
