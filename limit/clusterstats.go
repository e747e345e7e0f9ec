package limit

import "time"

// ClusterStats is what a Cluster has done since it began. Counts never fall;
// every label is there from the start.
type ClusterStats struct {
	// Calls counts calls to the store.
	Calls []CallCount
	// Tokens counts what became of tokens, in whole tokens: each that was
	// granted is used, given back, or expired in hand.
	Granted, Used, Returned, Expired int64
	// Breaker is the worst state of the shards' breakers.
	Breaker BreakerState
	// Degraded is how long some shard was away, altogether.
	Degraded time.Duration
}

// CallCount is how many calls of one kind came to one result.
type CallCount struct {
	// Op is "room" for draws on what many share (rooms, networks, keys,
	// everything), "user" for claims, gives and draws of a user's buckets,
	// "other" for slots, resets and beats.
	Op string
	// Result is "ok", "error" or "timeout".
	Result string
	N      int64
}

// BreakerState is how a shard's breaker stands.
type BreakerState uint8

// The states. Open means that the shard is not asked; Probing that one call is
// under way to find out.
const (
	BreakerClosed BreakerState = iota
	BreakerProbing
	BreakerOpen
)

// String returns the state's name in lower case.
func (s BreakerState) String() string { return nameOf([]string{"closed", "probing", "open"}, int(s)) }

// Stats returns the counts so far.
func (c *Cluster) Stats() ClusterStats { return ClusterStats{} }

// Degraded tells whether some shard of the store is away, so that its rules go
// by their on_outage, since when, and why.
func (c *Cluster) Degraded() (since time.Time, reason string, yes bool) {
	return time.Time{}, "", false
}
