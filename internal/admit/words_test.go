package admit

import (
	"testing"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

func TestError(t *testing.T) {
	for name, c := range map[string]struct {
		d           limit.Decision
		reason      protocol.Reason
		least, most time.Duration
	}{
		"over its quota":  {limit.Decision{Verdict: limit.Reject, RetryAfter: 4 * time.Second}, protocol.ReasonRateLimited, 4 * time.Second, 5 * time.Second},
		"never":           {limit.Decision{Verdict: limit.Reject, RetryAfter: limit.Never}, protocol.ReasonRateLimited, 0, 0},
		"store away":      {limit.Decision{Verdict: limit.Reject, RetryAfter: 50 * time.Millisecond, Unavailable: true}, protocol.ReasonUnavailable, time.Second, 2 * time.Second},
		"store away long": {limit.Decision{Verdict: limit.Reject, RetryAfter: 4 * time.Second, Unavailable: true}, protocol.ReasonUnavailable, 4 * time.Second, 5 * time.Second},
		"invalid":         {limit.Decision{Verdict: limit.Invalid}, protocol.ReasonInternal, 0, 0},
	} {
		err := Error(protocol.ReasonRateLimited, c.d)
		if err.Reason != c.reason || err.RetryAfter < c.least || err.RetryAfter > c.most {
			t.Errorf("%s: %+v", name, err)
		}
	}
	if err := TurnedAway(limit.Decision{Verdict: limit.Reject, RetryAfter: limit.Never}); err.RetryAfter != longest {
		t.Errorf("for ever is told as %s", err.RetryAfter)
	}
}
