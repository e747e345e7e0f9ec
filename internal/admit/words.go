package admit

import (
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// longest is the wait told where no wait helps and one has to be named, by the end
// of a session and by Retry-After: a rule that bars for ever may be changed.
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

// TurnedAway is told to a request over HTTP, and to a socket before it may say
// anything.
func TurnedAway(d limit.Decision) *protocol.Error {
	err := Error(protocol.ReasonRateLimited, d)
	if d.RetryAfter > longest {
		err.RetryAfter = longest
	}
	return err
}
