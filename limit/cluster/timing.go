package cluster

import (
	"runtime"
	"sync/atomic"
	"time"
)

// timing is how long everything takes and may take, as the store is far and as
// this process is late.
type timing struct {
	cfg *Config // fixed

	roundTrip atomic.Int64 // the longest of late, in ns
	lag       atomic.Int64 // how late this process is, in ns
}

// patience is how long a call may take: longer than a decision waits for it at
// first, since a late grant is still a grant.
func (t *timing) patience() time.Duration { return 6 * t.cfg.Budget * t.allowance() }

// allowance is how many times as long as usual the store may take: more where
// this process is late itself, so that a storm of calls is nobody's outage.
func (t *timing) allowance() time.Duration {
	if time.Duration(t.lag.Load()) >= behind {
		return 4
	}
	return 1
}

// behind is the wait for a processor from which on a process counts as late.
const behind = 5 * time.Millisecond

// feelLag measures how long a goroutine waits for a processor now, and goes on
// with half of what that was before when it is less.
func (t *timing) feelLag() {
	began := t.cfg.Clock()
	runtime.Gosched()
	t.lag.Store(max(int64(t.cfg.Clock().Sub(began)), t.lag.Load()/2))
}

// slow is from which round trip on a shard counts as failing although it
// answers. It lies below patience, so that there is no round trip at which
// calls are given up and the shard is not away.
func (t *timing) slow() time.Duration { return 5 * t.cfg.Budget * t.allowance() }

// budget is how long a decision waits, over all of its rules: the configured
// time, and where the store is farther away as long as the longest way takes: a
// call under way is awaited, then a claim is asked for, given back by its owner
// (who may have a call under way, too), and drawn from.
func (t *timing) budget() time.Duration {
	return min(max(t.cfg.Budget, 6*t.trip()+t.cfg.Spacing), max(t.cfg.Budget, longestBudget))
}

// longestBudget bounds what a decision waits for a store that is just fast
// enough.
const longestBudget = time.Second

// horizon is how much of its demand a node keeps in hand: enough for two round
// trips, but nothing that would expire first.
func (t *timing) horizon() time.Duration {
	return max(t.cfg.Horizon, min(2*t.trip(), t.cfg.Lease-t.trip()))
}

// lease is how long a node may spend what it is granted: as configured, and
// longer where the store is far. A decision that waits for another rule's
// answer, four trips away, must find what it was granted before.
func (t *timing) lease() time.Duration {
	return min(max(t.cfg.Lease, 5*t.trip()), t.longestLease())
}

// longestLease bounds that.
func (t *timing) longestLease() time.Duration { return max(t.cfg.Lease, 750*time.Millisecond) }

// idle is how long a node keeps what nobody spends.
func (t *timing) idle() time.Duration { return max(t.cfg.Lease/2, min(4*t.trip(), t.lease())) }

// trip is how long a call takes, from when it is due: the longest of late.
func (t *timing) trip() time.Duration { return time.Duration(t.roundTrip.Load()) }

// gather is how long the next call waits after an answer, so that those whom the
// answer wakes spend it first and ask for what they lack together: of a key one
// call is under way at a time, and one that asked too early costs a whole trip.
func (t *timing) gather() time.Duration { return t.trip() / 16 }

// sawTrip rises at once, since who waits for too short a time is refused, and
// falls by an eighth with each batch and beat.
func (t *timing) sawTrip(d time.Duration) {
	was := t.roundTrip.Load()
	t.roundTrip.Store(max(int64(d), was+(int64(d)-was)/8))
}
