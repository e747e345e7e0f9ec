package admit

import (
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

const (
	// unjudged is the least wait told when a store is away.
	unjudged = time.Second
	// Longest is the wait told to a socket that no wait helps: the end of a
	// session has to name one, and a rule that bars for ever may be changed.
	Longest = 24 * time.Hour
)

// Error renders a decision that did not allow everything; reason is why, unless
// it could not be judged. Where no wait helps, none is told.
func Error(reason protocol.Reason, d limit.Decision) *protocol.Error {
	err := &protocol.Error{Reason: reason, Scope: d.Scope.String(), Rule: d.Rule}
	switch {
	case d.Verdict == limit.Invalid:
		return &protocol.Error{Reason: protocol.ReasonInternal}
	case d.Unavailable:
		err.Reason = protocol.ReasonUnavailable
		err.RetryAfter = limit.Jitter(max(d.RetryAfter, unjudged))
	case d.RetryAfter == limit.Never:
	case d.RetryAfter > 0:
		err.RetryAfter = limit.Jitter(d.RetryAfter)
	}
	return err
}

// Wait is what a socket is told that is turned away before it may say anything.
func Wait(d limit.Decision) time.Duration { return min(limit.Jitter(d.RetryAfter), Longest) }
