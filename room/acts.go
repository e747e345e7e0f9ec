package room

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"liveroom/protocol"
)

// A room's settings are one value, and a mute in a room with a thousand of them must not cost what stands. So a mute, a ban or a deletion is
// stored as a deed of its own behind the settings, and brought into them with others later: then versions that know no deeds have it too.

const (
	gatherEvery = 5 * time.Second // deeds wait so long for others
	gatherAt    = 200             // as many are brought into the settings at once
)

// deed is what an act has left: one mute, ban or deletion. In the store it is JSON; one that says nothing only has a number.
type deed struct {
	Of   protocol.Action `json:"of,omitempty"` // mute, ban or delete
	User string          `json:"user,omitempty"`
	MID  string          `json:"mid,omitempty"`
	Is   *Sanction       `json:"is,omitempty"` // nil: it was lifted
	At   int64           `json:"at,omitempty"` // of a deletion, Unix ms

	seq  uint64
	size int
}

// deed reads what an act on a user or a message has left.
func (s *stored) deed(about deed, now int64) deed {
	switch about.Of {
	case protocol.ActionMute, protocol.ActionUnmute:
		return deed{Of: protocol.ActionMute, User: about.User, Is: sanctionOf(s.Mutes, about.User)}
	case protocol.ActionBan, protocol.ActionUnban:
		return deed{Of: protocol.ActionBan, User: about.User, Is: sanctionOf(s.Bans, about.User)}
	}
	return deed{Of: protocol.ActionDelete, MID: about.MID, At: now}
}

// do writes a deed. Who left it has found that it may be.
func (s *stored) do(d deed) {
	laid := func(list []Sanction) []Sanction {
		if list = without(list, d.User); d.Is != nil {
			list = append(list, *d.Is)
		}
		return list
	}
	switch d.Of {
	case protocol.ActionMute:
		s.Mutes = laid(s.Mutes)
	case protocol.ActionBan:
		s.Bans = laid(s.Bans)
	case protocol.ActionDelete:
		s.remove(d.MID, d.At)
	}
}

// deedLog is how far a policy is with the room's deeds.
type deedLog struct {
	last  uint64 // number of the newest that is in the policy and says something
	tail  uint64 // of the newest that the store has; 0: it has none
	since []deed // that the stored settings do not have, in order
	bytes int    // of these and of the settings, encoded
}

func (l *deedLog) has(seq uint64) bool {
	return slices.ContainsFunc(l.since, func(d deed) bool { return d.seq == seq })
}

// add puts one behind the others.
func (l *deedLog) add(d deed) {
	if d.Of != "" {
		l.last = max(l.last, d.seq)
		l.since = append(slices.Clip(l.since), d)
		l.bytes += d.size
	}
}

// after is a policy, as it was stored, with the deeds that it has not yet and the one before had.
func (p *policy) after(old *policy) *policy {
	s, log := p.stored.clone(), deedLog{last: max(p.Acts, old.log.last), tail: old.log.tail, bytes: p.log.bytes}
	s.Acts = max(p.Acts, old.Acts) // a version that knows no deeds leaves it out
	for _, d := range old.log.since {
		if d.seq > s.Acts {
			s.do(d)
			log.add(d)
		}
	}
	next := p.amended(s)
	next.log = log
	return next
}

// follow puts deeds into force that the store has taken; tail is the number of its newest. Those that the store had when the room opened here
// may come behind newer ones.
func (r *Room) follow(tail uint64, acts ...protocol.StoredAct) {
	r.enforce(func(old *policy) *policy {
		if tail == old.log.tail && lastOf(acts) == old.log.last {
			return nil // our own, come back
		}
		s, log, late := old.stored.clone(), old.log, false
		log.tail = tail
		for _, a := range acts {
			if a.Seq <= s.Acts || log.has(a.Seq) {
				continue
			}
			d := deed{}
			if err := json.Unmarshal(a.Value, &d); err != nil {
				r.hub.troubled("an act can't be read", r.id, err)
			}
			d.seq, d.size = a.Seq, len(a.Value)
			late = late || d.seq < log.last
			s.do(d)
			log.add(d)
		}
		if late { // each says what is now, and so the newest says it last
			slices.SortFunc(log.since, func(a, b deed) int { return cmp.Compare(a.seq, b.seq) })
			for _, d := range log.since {
				s.do(d)
			}
		}
		next := *old
		if len(log.since) > len(old.log.since) {
			next = *old.amended(s)
		}
		next.log = log
		return &next
	})
}

// lastOf is the number of the last act, 0 for none.
func lastOf(acts []protocol.StoredAct) uint64 {
	if len(acts) == 0 {
		return 0
	}
	return acts[len(acts)-1].Seq
}

// errAsWhole says that a change is stored with all settings.
var errAsWhole = errors.New("room: not by itself")

// putAct stores what a change is about, nil for all, by itself.
func (r *Room) putAct(ctx context.Context, p *policy, s *stored, about *deed, now int64) error {
	if about == nil || len(p.log.since) >= gatherAt {
		return errAsWhole
	}
	value, err := json.Marshal(s.deed(*about, now))
	if err != nil {
		return err
	}
	if p.log.bytes+len(value) > maxSettings {
		return errAsWhole
	}
	seq, err := r.hub.bus.PutAct(ctx, r.id, value, p.log.tail, false)
	if errors.Is(err, ErrRefused) {
		return errAsWhole // it is full, or forbidden; if nothing at all is stored, that is said next
	}
	if err != nil {
		return err
	}
	r.follow(seq, protocol.StoredAct{Seq: seq, Value: value})
	if seq <= p.log.last { // numbers of a log that was lost: nobody takes them for new
		return errAsWhole
	}
	r.gatherSoon()
	return nil
}

// gatherSoon has a goroutine bring deeds into the settings, unless one does.
func (r *Room) gatherSoon() {
	if r.gathering.CompareAndSwap(false, true) && !r.hub.spawn(r.gather) {
		r.gathering.Store(false)
	}
}

func (r *Room) gather() {
	timer := time.NewTimer(gatherEvery)
	defer timer.Stop()
	ending := false
	for !ending {
		select {
		case <-timer.C:
		case <-r.hub.done:
			ending = true
		}
		if r.gathered(context.Background()) {
			break
		}
		timer.Reset(gatherEvery)
	}
	r.gathering.Store(false)
	if len(r.policy.Load().log.since) > 0 { // one came meanwhile
		r.gatherSoon()
	}
}

// gathered brings deeds into the settings and reports whether all are there. One that says nothing takes their place in the store.
func (r *Room) gathered(ctx context.Context) bool {
	if len(r.policy.Load().log.since) > 0 && r.change(ctx, func(*stored, int64) *protocol.Error { return nil }) != nil {
		return false // told to the log
	}
	p := r.policy.Load()
	if len(p.log.since) > 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	nothing := []byte("{}")
	if seq, err := r.hub.bus.PutAct(ctx, r.id, nothing, p.log.tail, true); err == nil { // else the next time
		r.follow(seq, protocol.StoredAct{Seq: seq, Value: nothing})
	}
	return true
}
