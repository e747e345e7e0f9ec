package room

import (
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// A frame of one danmaku does not deflate, one of sixteen does to a third. So a room in which many viewers take deflated
// frames gathers for longer while enough is said to make that worth it: its ticks are as long as gathered messages take to
// come, [Config.GatherTick] at most. A room where less is said than worthGathering within that keeps its ticks, gifts and
// control wait for no more than the tick as it is configured, and the first message after a quiet tick leaves at once.
const (
	gathered       = 16 // messages per frame to aim for
	worthGathering = 4  // messages within the longest tick below which waiting saves too little
)

// paceOver is how far back a room's rate of messages is looked at.
const paceOver = time.Second

// pace is a room's rate of messages, averaged over about paceOver.
type pace float64 // per second

// note counts n messages that came within dt.
func (p *pace) note(n int, dt time.Duration) {
	if dt <= 0 {
		return
	}
	weight := dt.Seconds() / (dt + paceOver).Seconds()
	*p += pace(weight) * (pace(float64(n)/dt.Seconds()) - *p)
}

// takes is how long n messages take to come.
func (p pace) takes(n int) time.Duration {
	return time.Duration(float64(n) / float64(max(p, 1e-3)) * float64(time.Second))
}

// noteLocked counts the batch that is about to be flushed.
func (r *Room) noteLocked(now limit.Instant) {
	r.tick.pace.note(r.tick.batch.Len(), now.Sub(r.tick.flushed))
}

// gatherLocked is how long a tick is for the sake of deflating; 0 where that makes no difference.
func (r *Room) gatherLocked() time.Duration {
	cfg, b := &r.hub.cfg, &r.tick.batch
	switch {
	case r.audience.deflating < cfg.DeflateFrom, r.tick.pace.takes(worthGathering) > cfg.GatherTick,
		b.Count(protocol.ClassGift)+b.Count(protocol.ClassControl) > 0:
		return 0
	}
	return min(r.tick.pace.takes(gathered), cfg.GatherTick)
}
