package fanout

import (
	"context"
	"fmt"
)

// seen is how far somebody has seen a room. It is said on the room's own subject, so that whoever is behind catches up
// on its feed's goroutine, in order with everything else.
type seen struct {
	gift     uint64
	revision uint64
	likes    int64
}

func (v seen) append(dst []byte) []byte {
	return fmt.Appendf(dst, "%d %d %d", v.gift, v.revision, v.likes)
}

func parseSeen(b []byte) (v seen, ok bool) {
	n, err := fmt.Sscanf(string(b), "%d %d %d", &v.gift, &v.revision, &v.likes)
	return v, err == nil && n == 3
}

// seen returns how far this subscription is.
func (s *Subscription) seen() seen {
	return seen{s.lastGift.Load(), s.revision.Load(), s.total.Load()}
}

// behind reports whether v has something that this subscription has not.
func (s *Subscription) behind(v seen) bool {
	own := s.seen()
	return v.gift > own.gift || v.revision > own.revision || v.likes > own.likes
}

func (f *Fabric) say(room string, v seen) {
	// Lost when disconnected: presence and sweep say it again.
	_ = f.publish(roomSubject(room, kindSeen), v.append(nil))
}

func (f *Fabric) sayGift(room string, seq uint64) { f.say(room, seen{gift: seq}) }

func (s *Subscription) receiveSeen(b []byte) {
	v, ok := parseSeen(b)
	if !ok {
		return
	}
	s.advanceLikes(v.likes)
	if v.revision > s.revision.Load() {
		r, err := s.f.storedSettings(context.Background(), s.room) // bounded by StoreTimeout
		if err != nil {
			s.f.log.Warn("settings changed and cannot be read yet", "room", s.room, "err", err)
			s.f.sweepSoon.soon()
		} else {
			s.advanceSettings(r)
		}
	}
	switch {
	case v.gift <= s.lastGift.Load():
	case s.known.Load():
		s.fill(v.gift)
	default: // the store was away at the start: begin here
		s.lastGift.Store(v.gift)
		s.known.Store(true)
	}
}
