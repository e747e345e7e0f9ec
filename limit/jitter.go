package limit

import (
	"math/rand/v2"
	"time"
)

// The jitter's share of the wait, and its bounds.
const (
	jitterShare = 8
	minJitter   = 50 * time.Millisecond
	maxJitter   = 2 * time.Second
)

// Jitter returns what to tell a client in place of an exact wait: 1 ms more,
// and a random part of an eighth of the wait, or of 50 ms or 2 s where that
// eighth is less or more. So a thousand refused in the same instant do not
// come back in one. Never stays Never.
func Jitter(wait time.Duration) time.Duration {
	if wait >= Never-maxJitter {
		return Never
	}
	return wait + time.Millisecond + rand.N(min(max(wait/jitterShare, minJitter), maxJitter))
}
