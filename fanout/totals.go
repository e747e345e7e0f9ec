package fanout

import "liveroom/internal/lock"

// totals are the last like totals of rooms that were here, for a store that loses them.
type totals struct {
	mu     lock.Mutex[lock.Leaf]
	byRoom map[string]int64
	rooms  []string // in the order of their coming, from next on
	next   int
}

// totalsKept bounds them, about a megabyte.
const totalsKept = 10_000

func newTotals() *totals { return &totals{byRoom: map[string]int64{}} }

// keep notes the total of a room that is left.
func (t *totals) keep(room string, total int64) {
	if total == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.byRoom[room]; !ok {
		if len(t.rooms) < totalsKept {
			t.rooms = append(t.rooms, room)
		} else {
			delete(t.byRoom, t.rooms[t.next])
			t.rooms[t.next] = room
			t.next = (t.next + 1) % totalsKept
		}
	}
	t.byRoom[room] = max(t.byRoom[room], total)
}

func (t *totals) of(room string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byRoom[room]
}

func (t *totals) all() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string]int64, len(t.byRoom))
	for room, total := range t.byRoom {
		all[room] = total
	}
	return all
}

// shownLikes returns what this node has shown of rooms that are here and of rooms that were.
func (f *Fabric) shownLikes() map[string]int64 {
	shown := f.totals.all()
	for _, s := range f.subscriptions() {
		if total := s.total.Load(); total > 0 {
			shown[s.room] = max(shown[s.room], total)
		}
	}
	return shown
}
