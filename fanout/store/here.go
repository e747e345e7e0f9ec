package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"liveroom/fanout/link"
	"liveroom/internal/lock"
	"liveroom/protocol"
)

// A store that comes back empty would number anew, and everybody who knows a sequence would wait for a long time until
// the new ones pass it. So a node that makes a stream anew lets it begin beyond all that it knows, with a gap for what
// other nodes know and it does not.
const (
	giftGap     = 1 << 20
	settingsGap = 1 << 10
	nodesGap    = 1 << 20
)

// high is the highest sequence that this node has met of a stream; it only grows.
type high struct{ n atomic.Uint64 }

func (h *high) meet(n uint64) {
	for old := h.n.Load(); n > old && !h.n.CompareAndSwap(old, n); old = h.n.Load() {
	}
}

// next is where a new stream begins: beyond the gap, or at the server's default when nothing is known.
func (h *high) next(gap uint64) uint64 {
	if n := h.n.Load(); n > 0 {
		return n + gap
	}
	return 0
}

// here is what this node goes by of its rooms, for a store that comes back without it. Safe for concurrent use.
type here struct {
	gift, settings, acts, rules, catalogue, filter high

	mu    lock.Mutex[lock.Leaf]
	rooms map[string]*hereRoom // that have members here
	left  leftTotals           // of those that had
}

type hereRoom struct {
	settings link.Record
	outdated bool // the store has an older copy of them
	likes    int64
}

func newHere() *here {
	return &here{rooms: map[string]*hereRoom{}, left: leftTotals{byRoom: map[string]int64{}}}
}

func (h *here) enter(room string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rooms[room] = &hereRoom{}
}

// open takes what the store has of a room, and returns the like total, which is not less than what this node has shown.
func (h *here) open(room string, likes int64, settings link.Record) int64 {
	h.settings.meet(settings.Seq)
	h.mu.Lock()
	defer h.mu.Unlock()
	likes = max(likes, h.left.byRoom[room]) // if the store has lost some, the comparing finds out
	if r := h.rooms[room]; r != nil {
		r.settings, r.likes = settings, max(r.likes, likes)
	}
	return likes
}

func (h *here) leave(room string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[room]; r != nil {
		h.left.keep(room, r.likes)
		delete(h.rooms, room)
	}
}

// take keeps settings, and returns false for an older copy of those that the room goes by.
func (h *here) take(room string, settings link.Record) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rooms[room]
	if r == nil {
		return true
	}
	if r.settings.Outdates(settings) {
		r.outdated = true
		return false
	}
	r.settings = settings
	h.settings.meet(settings.Seq)
	return true
}

func (h *here) shown(room string, likes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[room]; r != nil {
		r.likes = max(r.likes, likes)
	}
}

// totals are all that this node has shown.
func (h *here) totals() map[string]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := maps.Clone(h.left.byRoom)
	for room, r := range h.rooms {
		if r.likes > 0 {
			all[room] = max(all[room], r.likes)
		}
	}
	return all
}

// untold are the settings that the store must be told: those that it has an older copy of, or all of them. They count as told
// unless [here.again] says otherwise.
func (h *here) untold(all bool) map[string]link.Record {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]link.Record{}
	for room, r := range h.rooms {
		if r.outdated || all {
			r.outdated = false
			out[room] = r.settings
		}
	}
	return out
}

func (h *here) again(room string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[room]; r != nil {
		r.outdated = true
	}
}

func (h *here) isOutdated(room string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rooms[room]
	return r != nil && r.outdated
}

// current are the settings that a room goes by now.
func (h *here) current(room string) link.Record {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[room]; r != nil {
		return r.settings
	}
	return link.Record{}
}

// leftTotals are the last like totals of rooms that were here.
type leftTotals struct {
	byRoom map[string]int64
	rooms  []string // in the order of their coming, from next on
	next   int
}

// totalsKept bounds them, about a megabyte.
const totalsKept = 10_000

// keep notes the total of a room that is left.
func (t *leftTotals) keep(room string, total int64) {
	if total == 0 {
		return
	}
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

// Enter notes that a room has members here, Leave that it has none any more.
func (s *Store) Enter(room string) { s.here.enter(room) }
func (s *Store) Leave(room string) { s.here.leave(room) }

// Take keeps the settings that a room here goes by. False: they are an older copy, and the store is told the newer one.
func (s *Store) Take(room string, settings link.Record) bool {
	if s.here.take(room, settings) {
		return true
	}
	s.LookAfter() // which writes the newer ones over them
	return false
}

// Shown keeps the like total that a room here has shown.
func (s *Store) Shown(room string, likes int64) { s.here.shown(room, likes) }

// MetGift notes that a gift has that sequence.
func (s *Store) MetGift(seq uint64) { s.here.gift.meet(seq) }

// Open returns what is stored of a room that is here.
func (s *Store) Open(ctx context.Context, room string) (v link.Stored, err error) {
	var errs [4]error
	var reads sync.WaitGroup
	reads.Go(func() { v.Gift, errs[0] = s.Gifts.LastGift(ctx, room) })
	reads.Go(func() { v.Likes, errs[1] = s.Likes.Likes(ctx, room) })
	reads.Go(func() { v.Settings, errs[2] = s.Settings.SettingsRecord(ctx, room) })
	reads.Go(func() { v.Acts, errs[3] = s.Settings.ActsAfter(ctx, room, 0) })
	reads.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return v, err
	}
	s.here.gift.meet(v.Gift)
	v.Revision, v.Likes = v.Settings.Seq, s.here.open(room, v.Likes, v.Settings)
	if n := len(v.Acts); n > 0 {
		v.Act = v.Acts[n-1].Seq
	}
	return v, nil
}

// ActsAfter returns a room's acts behind one.
func (s *Store) ActsAfter(ctx context.Context, room string, after uint64) ([]protocol.StoredAct, error) {
	return s.Settings.ActsAfter(ctx, room, after)
}

// GiftsAfter returns the gifts behind one of the room's, in order.
func (s *Store) GiftsAfter(ctx context.Context, room string, after uint64, limit int) ([]protocol.StoredGift, error) {
	return s.Gifts.giftsFrom(ctx, room, after, after, limit)
}

// SettingsRecord returns a room's settings, zero for none.
func (s *Store) SettingsRecord(ctx context.Context, room string) (link.Record, error) {
	return s.Settings.SettingsRecord(ctx, room)
}

// Compare returns how far the store is with each of these rooms, and raises the totals that are less than was shown. It renews
// settings on the way, which age otherwise.
func (s *Store) Compare(ctx context.Context, shown map[string]int64) (map[string]link.Seen, error) {
	stored := make(map[string]link.Seen, len(shown))
	each := func(stream string, subject func(room string) string, take func(v *link.Seen, r link.Record)) error {
		subjects := make([]string, 0, len(shown))
		for room := range shown {
			subjects = append(subjects, subject(room))
		}
		got, err := s.link.Read(ctx, stream, link.Ask{MultiLast: subjects, Batch: len(subjects)})
		for _, r := range got {
			room := link.RoomOf(link.LastToken(r.Subject))
			v := stored[room]
			take(&v, r)
			stored[room] = v
		}
		return err
	}
	var now time.Time
	for _, step := range []func() error{
		func() error {
			return each(link.GiftStream, giftSubject, func(v *link.Seen, r link.Record) { v.Gift = r.Seq })
		},
		func() error {
			return each(link.LikesStream, likesSubject, func(v *link.Seen, r link.Record) { v.Likes, _ = parseTotal(r.Data) })
		},
		func() error {
			return each(link.ActStream, actSubject, func(v *link.Seen, r link.Record) { v.Act = r.Seq })
		},
		func() error {
			info, err := s.link.StreamInfo(ctx, settingsStream)
			if err == nil {
				now = info.TimeStamp
			}
			return err
		},
		func() error {
			return each(settingsStream, settingsSubject, func(v *link.Seen, r link.Record) {
				v.Revision = r.Seq
				s.Settings.renew(ctx, r, now)
			})
		},
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("compare rooms with the store: %w", err)
		}
	}
	lost := map[string]int64{}
	for room, total := range shown {
		if stored[room].Likes < total {
			lost[room] = total
		}
	}
	return stored, s.Likes.heal(ctx, lost)
}
