package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"liveroom/fanout/link"
)

// TestWhatWaitsTooLongIsNeverStored: nothing is stored here, and who waits is told so; what was refused is left out later.
func TestWhatWaitsTooLongIsNeverStored(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), testContext(t)
	l := alone(t, dir)
	s, _, stop := open(t, l, dir, "n1")
	stop() // and with it the storing
	s.Gifts.groups.ended = make(chan struct{})
	s.Gifts.groups.cfg.StoreTimeout = 10 * time.Millisecond
	for _, id := range []string{"1", "2"} {
		if _, err := s.Gifts.StoreGift(ctx, "demo", "u", id, []byte("rose")); !errors.Is(err, link.ErrRefused) || !errors.Is(err, ErrLate) {
			t.Errorf("gift %s: %v", id, err)
		}
	}
	if left := s.Gifts.groups.next(); len(left) != 0 {
		t.Errorf("%d gifts would be stored", len(left))
	}
	s.Gifts.groups.cfg.StoreTimeout = 10 * time.Minute
	for range 100 {
		s.Gifts.groups.learn(groupMost, time.Hour)
	}
	for i := range groupMost + 1 {
		begun := s.Gifts.BeginGift(ctx, "demo", "u", fmt.Sprint("slow", i), nil)
		if i == groupMost { // more than a group would wait for too long
			if _, err := begun(); !errors.Is(err, link.ErrRefused) || !errors.Is(err, ErrLate) {
				t.Error("behind a full line:", err)
			}
		}
	}
	s.Gifts.groups.learn(groupMost, time.Millisecond)
	if most := s.Gifts.groups.most; most <= groupMost {
		t.Error("after a quick group the line is", most)
	}
	close(s.Gifts.groups.ended)
	if _, err := s.Gifts.StoreGift(ctx, "demo", "u", "3", []byte("rose")); !errors.Is(err, link.ErrRefused) || errors.Is(err, ErrLate) {
		t.Errorf("after the end: %v", err)
	}
	if info, err := l.StreamInfo(ctx, link.GiftStream); err != nil || info.State.Msgs != 0 {
		t.Errorf("%d gifts are stored, %v", info.State.Msgs, err)
	}
}
