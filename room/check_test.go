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
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.audience.check(); err != nil {
		return err
	}
	for _, s := range r.audience.shards {
		for _, m := range s.members {
			members[m.user]++
			if m.left.Load() && r.refs == 0 {
				return fmt.Errorf("member %d has left and is still there", m.number)
			}
		}
	}
	switch {
	case r.refs < r.audience.size:
		return fmt.Errorf("%d members, %d references", r.audience.size, r.refs)
	case r.crowd.here != r.audience.size:
		return fmt.Errorf("%d members, counted %d", r.audience.size, r.crowd.here)
	case int(r.online.Load()) != r.crowd.online():
		return fmt.Errorf("online is %d, the gate hears %d", r.crowd.online(), r.online.Load())
	case r.likes.shown > r.likes.total:
		return fmt.Errorf("likes: shown %d of %d", r.likes.shown, r.likes.total)
	case r.gifts.shown > r.gifts.last:
		return fmt.Errorf("gifts: shown %d, had %d", r.gifts.shown, r.gifts.last)
	}
	return nil
}

// check returns what is wrong with the audience.
func (a *audience) check() error {
	n, deflating := 0, 0
	var last *Member
	for i, s := range a.shards {
		if len(s.members) == 0 || len(s.members) >= a.most {
			return fmt.Errorf("shard %d has %d members", i, len(s.members))
		}
		for _, m := range s.members {
			if last != nil && inOrder(last, m) >= 0 {
				return fmt.Errorf("shard %d: %d/%d stands after %d/%d", i, m.descriptor, m.number, last.descriptor, last.number)
			}
			last = m
			n++
			if m.deflates {
				deflating++
			}
		}
	}
	if deflating != a.deflating {
		return fmt.Errorf("%d deflate, counted %d", deflating, a.deflating)
	}
	if n != a.size {
		return fmt.Errorf("size is %d, there are %d", a.size, n)
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
