package preview

import (
	"math/bits"
	"time"

	"liveroom/limit"
)

// stepOf numbers the steps since the recorder began.
func (r *Recorder) stepOf(now limit.Instant) int64 {
	d := int64(now.Sub(r.start))
	if d < 0 {
		return -1 - (-1-d)/int64(step)
	}
	return d / int64(step)
}

// stepStart returns the instant at which a step begins.
func (r *Recorder) stepStart(n int64) limit.Instant { return r.start.Add(time.Duration(n) * step) }

// countLocked counts one request in its step. A step is written down when another one of its kind begins.
func (s *shard) countLocked(r *Recorder, i uint32, now limit.Instant, cost, audience uint32) {
	k, at := &s.kinds[i], r.stepOf(now)
	if k.n > 0 && (k.step != at || k.n == 1<<16-1 || k.cost+cost < cost) {
		s.writeCountLocked(r, i)
	}
	if k.n == 0 {
		k.step, k.cost = at, 0
	}
	k.n++
	k.cost += cost
	k.audience = audience
}

func (s *shard) writeCountLocked(r *Recorder, i uint32) {
	k := &s.kinds[i]
	c := s.counts.tail()
	if c != nil && (k.step-c.base > 1<<30 || c.base-k.step > 1<<30) {
		c = nil
	}
	if c == nil {
		if c = s.counts.extend(s.pastLocked(r)); c == nil {
			oldest := s.counts.chunks[0]
			s.dropped.Oldest += int64(oldest.n)
			s.from = max(s.from, oldest.last.Add(step))
			c = s.counts.recycle()
		}
		c.base = k.step
	}
	c.add(r.stepStart(k.step), count{step: int32(k.step - c.base), kind: i, cost: k.cost, n: k.n, audience: coarse(k.audience)})
	k.n = 0
}

// pastLocked is the instant before which traffic is past its time. A step more than the window is kept, since the
// window's beginning is rounded down to a step.
func (s *shard) pastLocked(r *Recorder) limit.Instant {
	return s.newest.Add(-r.cfg.Window - 2*step)
}

// keepLocked writes an event down; it makes room by halving the sampled share, else by giving up the oldest.
func (s *shard) keepLocked(r *Recorder, e event) {
	c := s.events.tail()
	if c == nil {
		if c = s.events.extend(s.pastLocked(r)); c == nil {
			c = s.makeRoomLocked(r)
		}
		if s.people[e.user].hash == 0 || !inSample(s.people[e.user].hash, s.level) {
			return
		}
	}
	c.add(e.at, e)
}

func (s *shard) makeRoomLocked(r *Recorder) *chunk[event] {
	s.thinLocked(r)
	if c := s.events.tail(); c != nil {
		return c
	}
	if c := s.events.extend(s.pastLocked(r)); c != nil {
		return c
	}
	oldest := s.events.chunks[0]
	s.dropped.Oldest += int64(oldest.n)
	s.from = max(s.from, oldest.last.Add(1))
	return s.events.recycle()
}

// thinLocked brings the shard to the share in force, which it halves when the shard is there already.
func (s *shard) thinLocked(r *Recorder) {
	if s.level >= r.level.Load() {
		r.raise(s.level)
	}
	level := max(r.level.Load(), s.level)
	if level == s.level {
		return
	}
	s.level = level
	s.dropped.Thinned += s.events.filter(eventTime, func(e event) bool { return inSample(s.people[e.user].hash, level) })
	for hash, i := range s.users {
		if !inSample(hash, level) {
			s.forgetLocked(hash, i)
		}
	}
}

func eventTime(_ *chunk[event], e event) limit.Instant { return e.at }

func (s *shard) forgetLocked(hash uint64, i uint32) {
	p := &s.people[i]
	s.named -= personBytes + int64(len(p.Name)) + connBytes*int64(len(p.conns))
	delete(s.users, hash)
	*p = person{}
	s.noUser = append(s.noUser, i)
}

// sweepLocked forgets who and what was not seen within the window, and lets more users in when there is room.
func (s *shard) sweepLocked(r *Recorder) {
	s.swept = s.newest
	past := s.pastLocked(r)
	s.level = min(s.level, r.level.Load())
	for hash, i := range s.users {
		if s.people[i].seen < past {
			s.forgetLocked(hash, i)
		}
	}
	for name, at := range s.rooms {
		s.tidyLocked(r, at, past)
		if len(at.kinds) == 0 {
			s.named -= at.bytes()
			delete(s.rooms, name)
		}
	}
	live := s.events.tidy(past)
	s.counts.tidy(past)
	s.full.Store(max(int64(live)*1000/int64(s.events.most), s.named*1000/s.mostName))
	r.relax(s.newest)
}

func (s *shard) tidyLocked(r *Recorder, at *place, past limit.Instant) {
	left := at.kinds[:0]
	for _, i := range at.kinds {
		k := &s.kinds[i]
		if k.seen >= past {
			left = append(left, i)
			continue
		}
		s.named -= k.bytes()
		*k = counted{}
		s.noKind = append(s.noKind, i)
	}
	at.kinds = left
}

// coarse writes an audience in 16 bits: 11 of mantissa, rounded down by less than 1 in 1,024.
func coarse(n uint32) uint16 {
	shift := max(bits.Len32(n)-11, 0)
	return uint16(shift<<11) | uint16(n>>shift)
}

func fine(c uint16) uint32 { return uint32(c&(1<<11-1)) << (c >> 11) }
