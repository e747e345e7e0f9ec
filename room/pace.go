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
	time.Sleep(min(d.Delay, LongestDelay))
	return r.barred(r.policy.Load(), by, op)
}
