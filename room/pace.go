package room

import (
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// LongestDelay bounds how long a rule that paces may hold one message back. The wiring refuses rules that could ask for
// more; a decision that asks for more nevertheless, since a reload left a debt, is held for so long.
const LongestDelay = time.Second

// pace holds back what a leaky bucket admitted until its turn comes, on the goroutine of whoever asked: a session handles
// one frame at a time, so what it sends stays in order and no other session waits. A message goes ahead also when its
// sender leaves meanwhile, unless a moderator has barred it by then: pace returns why.
func (r *Room) pace(by *Speaker, op protocol.Op, d limit.Decision) *protocol.Error {
	if d.Delay <= 0 {
		return nil
	}
	if !by.await(func() { time.Sleep(min(d.Delay, LongestDelay)) }) {
		return later(op, protocol.OutcomeRefused)
	}
	return r.barred(r.policy.Load(), by, op)
}

// await runs f, which waits for a store, or for a message's turn, so that the speaker's socket holds nothing meanwhile that others
// need. False: too many wait already, and f did not run.
func (by *Speaker) await(f func()) bool {
	if by.echo == nil {
		f()
		return true
	}
	return by.echo.Await(f)
}

// answered is the answer of f, see [Speaker.await]; outcome is what is known of a gift for which f could not run.
func (by *Speaker) answered(req *protocol.Request, outcome protocol.Outcome, f func() protocol.Ack) protocol.Ack {
	ack := protocol.Refuse(req.ID, later(req.Op, outcome))
	by.await(func() { ack = f() })
	return ack
}
