package limit

import (
	"math/rand/v2"
	"time"
)

// The jitter's share of the wait, and its bounds.
const (
	jitterShare = 8
	minJitter   = 20 * time.Millisecond
	maxJitter   = 2 * time.Second
)

// Jitter returns what to tell a client in place of an exact wait: longer by a
// random amount of at least 1 ms and at most an eighth of the wait, though
// never less than 20 ms nor more than 2 s of range. A thousand refused in the
// same instant so return spread out. Never stays Never.
func Jitter(wait time.Duration) time.Duration {
	if wait >= Never-maxJitter {
		return Never
	}
	return wait + time.Millisecond + rand.N(min(max(wait/jitterShare, minJitter), maxJitter))
}
