package room

import (
	"liveroom/internal/admit"
	"liveroom/limit"
	"liveroom/protocol"
)

// tap counts likes: all of them, or as many as the buckets have.
func (r *Room) tap(now limit.Instant, by *Speaker, req *protocol.Request) protocol.Ack {
	if storing := r.hub.cfg.Storing; storing != nil && storing() != nil { // a like that is answered 200 is kept
		return protocol.Refuse(req.ID, later(req.Op, ""))
	}
	d := r.ask(now, by, limit.Like, int64(req.Count))
	if d.Verdict > limit.Degrade {
		return protocol.Refuse(req.ID, admit.Error(protocol.ReasonRateLimited, d))
	}
	defer r.release(now, by, limit.Like, int64(req.Count))
	if err := r.pace(by, req.Op, d); err != nil {
		return protocol.Refuse(req.ID, err)
	}
	r.like(d.Counted)
	ack := protocol.Ack{ID: req.ID, Code: protocol.OK, TS: r.hub.admittedAt(now, d)}
	if d.Verdict == limit.Degrade {
		ack.Code, ack.Counted, ack.Err = protocol.Degraded, int(d.Counted), admit.Error(protocol.ReasonFolded, d)
		return ack
	}
	r.hub.cfg.Metrics.messages[protocol.ClassLike].Inc()
	return ack
}
