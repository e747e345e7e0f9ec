package admit

import (
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// longest is the wait told to a socket that no wait helps: the end of a session
// has to name one, and a rule that bars for ever may be changed.
const longest = 24 * time.Hour

// Error renders a decision that did not allow everything; reason is why, unless
// it could not be judged. Where no wait helps, none is told.
func Error(reason protocol.Reason, d limit.Decision) *protocol.Error {
	if d.Verdict == limit.Invalid {
		return &protocol.Error{Reason: protocol.ReasonInternal}
	}
	err := &protocol.Error{Reason: reason, Scope: d.Scope.String(), Rule: d.Rule}
	if d.Unavailable {
		err.Reason = protocol.ReasonUnavailable
	}
	if wait := d.Told(); wait != limit.Never {
		err.RetryAfter = wait
	}
	return err
}

// turnedAway is told to a socket before it may say anything.
func turnedAway(d limit.Decision) *protocol.Error {
	err := Error(protocol.ReasonRateLimited, d)
	err.RetryAfter = min(d.Told(), longest)
	return err
}
