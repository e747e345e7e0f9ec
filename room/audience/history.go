package audience

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// history is a room's last danmaku, bytes as they came, in a ring that grows to its bound and no further. Their order and
// age are those of their arrival on this node: the times that they carry are of other nodes' clocks. Guarded by Audience.mu.
type history struct {
	ring  []spoken
	first int
	size  int
	most  int
	gone  spoken // the newest that has left the ring, or when the ring's knowledge begins
}

type spoken struct {
	event []byte
	mid   string        // of an event that was removed
	ts    int64         // instant of admission by its writer's clock, Unix ms
	at    limit.Instant // of arrival
	kept  []byte        // an event that was removed, in case it is to be shown again
}

func (s *spoken) is(mid string) bool {
	return s.mid == mid && mid != "" || protocol.EventHasMID(s.event, mid)
}

func (s *spoken) id() string {
	if s.event == nil {
		return s.mid
	}
	return protocol.EventMID(s.event)
}

func (h *history) at(i int) *spoken { return &h.ring[(h.first+i)%len(h.ring)] }

func (h *history) add(s spoken) {
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
	*h.at(h.size - 1) = s
}

func (h *history) drop() {
	h.gone = *h.at(0)
	*h.at(0) = spoken{}
	h.first = (h.first + 1) % len(h.ring)
	h.size--
}

// expire drops what came before the instant.
func (h *history) expire(before limit.Instant) {
	for h.size > 0 && h.at(0).at < before {
		h.drop()
	}
}

// since returns the danmaku that came at the instant or later, oldest first, without the newest hidden ones, and the
// newest of all that are not hidden. One that was released stands where its instant says, and was not seen before it came.
func (h *history) since(from limit.Instant, hidden int) (events [][]byte, newest *spoken) {
	newest, late := &h.gone, false
	for i := range h.size - hidden {
		s := h.at(i)
		newest = s
		if s.at >= from && s.event != nil {
			events = append(events, s.event)
			late = late || protocol.EventReleased(s.event)
		}
	}
	if late {
		slices.SortStableFunc(events, func(a, b []byte) int { return cmp.Compare(protocol.EventTS(a), protocol.EventTS(b)) })
	}
	return events, newest
}

// clockSlack is how far apart the clocks of two nodes are taken to be at most, where times must do for a position.
const clockSlack = time.Minute

// left returns from when on a resuming client has to be shown what came, and whether nothing of it is gone. A position is
// found by its mid, for clients that know no more by its time. A time that is nobody's is compared with this node's
// clock, wall, and what can't be told for sure then is not whole.
func (h *history) left(c *protocol.Cursor, now limit.Instant, wall func(limit.Instant) int64) (from limit.Instant, whole bool) {
	if c.Last == "" && c.Chat == 0 { // asks for none: every welcome gives a position to come back to
		return awake, true
	}
	is := func(s *spoken) bool { return s.is(c.Last) }
	if c.Last == "" {
		is = func(s *spoken) bool { return s.ts == c.Chat }
	}
	if is(&h.gone) {
		return awake, true
	}
	for i := range h.size {
		if s := h.at(i); is(s) {
			return s.at, true
		}
	}
	floor := wall(h.gone.at) + clockSlack.Milliseconds()
	return awake, c.Last == "" && floor <= c.Chat && c.Chat <= wall(now)
}

// find returns the event of a message; nil when the ring does not have it.
func (h *history) find(mid string) []byte {
	for i := h.size - 1; i >= 0; i-- {
		if s := h.at(i); protocol.EventHasMID(s.event, mid) {
			return s.event
		}
	}
	return nil
}

// remove forgets a message. Its place stays, so that the count of what is not shown yet stays right, and who was there
// finds it again.
func (h *history) remove(mid string) {
	for i := h.size - 1; i >= 0; i-- {
		if s := h.at(i); protocol.EventHasMID(s.event, mid) {
			s.event, s.mid, s.kept = nil, mid, s.event
			return
		}
	}
}

// removed returns a message that was removed and can come back; nil: there is none.
func (h *history) removed(mid string) *spoken {
	for i := h.size - 1; i >= 0; i-- {
		if s := h.at(i); s.mid == mid && s.kept != nil {
			return s
		}
	}
	return nil
}

// removeOf is remove of all that a user said within a time, for good.
func (h *history) removeOf(user string, from, until int64) {
	erased := func(u string) int64 {
		if u == user {
			return until
		}
		return 0
	}
	for i := range h.size {
		s := h.at(i)
		event := s.event
		if event == nil {
			event = s.kept
		}
		switch by, ok := protocol.EventUser(event); {
		case !ok || s.ts < from || s.ts > until:
		case by.ID == user:
			s.event, s.kept, s.mid = nil, nil, protocol.EventMID(event)
		case s.event != nil:
			s.event = protocol.Forgotten(event, erased)
		default:
			s.kept = protocol.Forgotten(event, erased)
		}
	}
}

// recallLocked is [Audience.Restore] for the history.
func (a *Audience[V]) recallLocked(recent [][]byte, opened, floor limit.Instant, deleted func(event []byte) bool) {
	since := a.history
	if len(recent) >= since.most {
		floor = opened
	}
	a.history = history{most: since.most, gone: spoken{at: floor}}
	for _, event := range recent {
		s := spoken{event: event, ts: protocol.EventTS(event), at: opened}
		mid := s.id()
		if since.find(mid) != nil {
			continue
		}
		if deleted(event) {
			s.event, s.mid, s.kept = nil, mid, event
		} else {
			a.authors.note(event)
		}
		a.history.add(s)
	}
	for i := range since.size {
		a.history.add(*since.at(i))
	}
	if since.gone.id() != "" { // more came while the room opened than it keeps
		a.history.gone = since.gone
	}
}

// Find returns the event of a recent danmaku; nil when it is none.
func (a *Audience[V]) Find(mid string) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.history.find(mid)
}

// Said returns what a user said lately, the newest first, at most most of it.
func (a *Audience[V]) Said(user string, most int) (events [][]byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := a.history.size - 1; i >= 0 && len(events) < most; i-- {
		event := a.history.at(i).event
		if by, ok := protocol.EventUser(event); ok && by.ID == user {
			events = append(events, event)
		}
	}
	return events
}

// ForgetOf takes what a user said within a time, in Unix ms, out of what newcomers are shown, and the name out of what was answered then.
func (a *Audience[V]) ForgetOf(user string, from, until int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.history.removeOf(user, from, until)
}

// When returns the instant of a recent danmaku, deleted or not, in Unix ms; 0 when it is none.
func (a *Audience[V]) When(mid string) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.history.size {
		if s := a.history.at(i); s.is(mid) {
			return s.ts
		}
	}
	return 0
}

// Forget takes a danmaku out of what newcomers are shown.
func (a *Audience[V]) Forget(mid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.history.remove(mid)
}

// Kept reports whether a danmaku that was forgotten can be shown again.
func (a *Audience[V]) Kept(mid string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.history.removed(mid) != nil
}

// Recall undoes Forget and returns the event, nil when it is gone.
func (a *Audience[V]) Recall(mid string) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.history.removed(mid)
	if s == nil {
		return nil
	}
	s.event, s.mid, s.kept = s.kept, "", nil
	return s.event
}

// maxAuthored bounds the messages of hosts, moderators and admins whose author a room still knows when its history has
// forgotten them: viewers go on seeing them, and a moderator may not delete them.
const maxAuthored = 256

// authors are who said a room's newest messages of more than viewers, the oldest first. Guarded by Audience.mu.
type authors []authored

type authored struct {
	mid  string
	user string
	role protocol.Role
}

// roleField is in the event of whoever is no viewer, and in no text, where its quotes are escaped.
var roleField = []byte(`,"role":"`)

// note remembers who said a danmaku, unless a viewer did.
func (a *authors) note(event []byte) {
	if !bytes.Contains(event, roleField) {
		return
	}
	user, ok := protocol.EventUser(event)
	if !ok {
		return
	}
	*a = append((*a)[max(len(*a)-maxAuthored+1, 0):], authored{protocol.EventMID(event), user.ID, user.Role})
}

// Author tells who said a danmaku, and in which role; false where nobody knows any more, and then a viewer did.
func (a *Audience[V]) Author(mid string) (user string, role protocol.Role, known bool) {
	if said, known := protocol.EventUser(a.Find(mid)); known {
		return said.ID, said.Role, true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, by := range a.authors {
		if by.mid == mid {
			return by.user, by.role, true
		}
	}
	return "", protocol.RoleViewer, false
}
