package room

import "liveroom/protocol"

// history is a room's last danmaku, bytes as they came, in a ring that grows to its bound and no further. Guarded by
// Room.mu.
type history struct {
	ring  []spoken
	first int
	size  int
	most  int
	floor int64 // ts of the newest danmaku that has left the ring; 0: none has
}

type spoken struct {
	event []byte
	ts    int64 // instant of admission, Unix ms
}

func (h *history) at(i int) *spoken { return &h.ring[(h.first+i)%len(h.ring)] }

func (h *history) add(event []byte, ts int64) {
	switch {
	case h.size < len(h.ring):
	case h.size < h.most:
		grown := make([]spoken, min(h.most, max(8, 2*h.size)))
		for i := range h.size {
			grown[i] = *h.at(i)
		}
		h.ring, h.first = grown, 0
	default:
		h.drop()
	}
	h.size++
	*h.at(h.size - 1) = spoken{event, ts}
}

func (h *history) drop() {
	oldest := h.at(0)
	h.floor = max(h.floor, oldest.ts)
	*oldest = spoken{}
	h.first = (h.first + 1) % len(h.ring)
	h.size--
}

// expire drops what was said before the instant.
func (h *history) expire(before int64) {
	for h.size > 0 && h.at(0).ts < before {
		h.drop()
	}
}

// since returns the danmaku from the instant on, oldest first, without the newest hidden ones, and the ts of the last
// one it looked at.
func (h *history) since(from int64, hidden int) (events [][]byte, last int64) {
	for i := range h.size - hidden {
		s := h.at(i)
		last = max(last, s.ts)
		if s.ts >= from && s.event != nil {
			events = append(events, s.event)
		}
	}
	return events, last
}

// find returns the event of a message; nil when the ring does not have it.
func (h *history) find(mid string) []byte {
	for i := h.size - 1; i >= 0; i-- {
		if e := h.at(i).event; e != nil && protocol.EventMID(e) == mid {
			return e
		}
	}
	return nil
}

// remove forgets a message. Its place stays, so that the count of what is not shown yet stays right.
func (h *history) remove(mid string) {
	for i := h.size - 1; i >= 0; i-- {
		if s := h.at(i); s.event != nil && protocol.EventMID(s.event) == mid {
			s.event = nil
			return
		}
	}
}
