package cluster

import (
	"context"
	"errors"
	"time"

	"liveroom/limit"
)

// Store keeps the levels that several nodes share. A Cluster is its one caller;
// package redisstore implements it over Redis. It is safe for concurrent use.
type Store interface {
	// Shard names the server that has a key, so that calls to one server go
	// out together and one server's silence does not stop the others. It does
	// no I/O. Names are few, and stable while the servers are.
	Shard(key string) string
	// Do sends all calls, which are of one shard, together and sets each
	// call's Reply or Err. It returns when ctx ends at the latest.
	Do(ctx context.Context, calls []*Call)
	// Beat asks a shard how it is, and has it write as a call does: an error
	// says that calls would fail. The answer changes whenever the shard may
	// have lost what it was told: after a restart, after a fail-over.
	Beat(ctx context.Context, shard string) (life string, err error)
	// Shards names all servers.
	Shards() []string
}

// Tolerance is the jitter on the way to the store: a step of its clock below it
// is not told from a call that came late.
const Tolerance = 200 * time.Millisecond

// ErrStale is the Err of a call that the store had answered before, or that
// was overtaken by a later one of the same node and key. It had no effect.
var ErrStale = errors.New("cluster: the call was overtaken")

// ErrRefused is the Err of a call that the server refuses as it would every
// other: it is full, lacks its replicas, or does not let this node write.
var ErrRefused = errors.New("cluster: the store takes no calls")

// Op is what a Call wants.
type Op uint8

// The operations. Each is one atomic step on one key.
const (
	// OpDraw asks for tokens to hold and to spend. It also tells what became
	// of those that were granted before, and gives back what is not needed.
	OpDraw Op = iota
	// OpClaim asks for the whole bucket: it is granted when no other node
	// holds any of it, and then the node fills and spends it by itself until
	// it gives it back. Only buckets can be claimed.
	OpClaim
	// OpGive gives a claimed bucket back, at Call.Level.
	OpGive
	// OpSlot takes one of a concurrency rule's slots, until Call.Lease is over
	// or OpFree gives it back. Call.Seq names the slot.
	OpSlot
	OpFree
	// OpReset fills the bucket as far as nobody holds it, as an operator does
	// who lifts a limit by hand. A claim stays: its owner is told otherwise.
	OpReset
)

// String returns the name that metrics use.
func (o Op) String() string {
	return [...]string{"draw", "claim", "give", "slot", "free", "reset"}[o]
}

// Call is one step on one key, with its answer.
type Call struct {
	Op  Op
	Key string
	// Node is who asks: unique to this key, process and lease, so that its
	// Seq and Received begin at 0 once only.
	Node string
	// Seq grows with each call of Node to this key. The same Seq sent again
	// has the same answer and no second effect; an older one is ErrStale.
	Seq int64
	// Tiers are the terms by audience, one when the rule has none; Want is the
	// tier that the audience asks for by itself, Stay is false when it is
	// beyond the bounds of the tier in force by the margin: see Reply.Tier.
	Tiers []limit.Terms
	Want  int
	Stay  bool

	// Received is the sum of all grants that Node has heard of. Where the
	// store has heard of less, it has lost some and debits them now, at most
	// what could have been granted; where of more, a reply was lost and what
	// it granted goes back, unless it has expired.
	Received int64
	// Hold is what Node keeps of its grants; all of a claimed bucket's are 0.
	Hold int64
	// Returned is the sum of all that Node has ever given back of its grants.
	// What is new in it is credited once, unless it has expired. It is a sum so
	// that it may be told again in any later call when a reply is lost: what
	// was once told here must not come back into the hand. What is neither
	// held nor returned is spent.
	Returned int64
	// Debt is the sum of all that Node ever spent without asking while the
	// store was away. What is new in it is debited once, at most a size.
	Debt int64
	// Ask is what Node wants, Least the smallest part it can use. A grant is
	// between them or 0.
	Ask, Least int64
	// Level is what OpGive gives back, and what an OpClaim that is Owned has.
	Level int64
	// Owned says in an OpClaim that Node has had the bucket until now by all it
	// knows, and Level is what it has in it. Where the store has lost that, it
	// claims it at Level at once instead of waiting for holds of others.
	Owned bool
	// Floor is what this draw must leave in the bucket.
	Floor int64
	// Lease is how long, from the receipt of the call, the store counts what
	// Node holds as outstanding. The node counts it from before it sent the
	// call and so stops sooner.
	Lease time.Duration

	// Seen is Reply.Now of the last answer on this key that Node had, 0 for
	// none. By Node's monotonic clock at least LeastSince (from the receipt of
	// that answer to now) and at most MostSince (from before that call was
	// sent to now) have passed; now is just before this call is sent. A store
	// whose clock runs ahead of MostSince by more than Tolerance takes it for a
	// step and goes on from LeastSince.
	Seen                  int64
	LeastSince, MostSince time.Duration
	// Lost says that the key may have existed: when it is missing, its bucket
	// starts empty, and another node may still hold all of it for a Lease.
	Lost bool
	// Steal names an owner that is known to be gone: its bucket is taken as
	// empty. Free names one that does not know the bucket: it gave it back full,
	// or never heard that its claim was granted; the bucket goes on from the
	// level of the claim, refilled since.
	Steal, Free string

	Reply Reply
	Err   error
}

// Reply is a store's answer.
type Reply struct {
	// Now is the store's time in microseconds: the server's clock, corrected
	// such that it neither jumps nor runs backwards for anybody who asks.
	Now int64
	// Granted are the shares that Node may spend from now on.
	Granted int64
	// Left is what the bucket still has, below 0 when it is in debt, in whole
	// shares rounded down.
	Left int64
	// Wait is the exact time until Call.Least can be granted if nobody else
	// comes, to the microsecond, Never when it never can; 0 when it was. After
	// a claim that was refused for others' holds, the time until they expire.
	Wait time.Duration
	// Ends is when the window ends in which the grant is good, from Now; 0
	// when it is good for the whole lease.
	Ends time.Duration
	// Tier is the tier in force.
	Tier int
	// Owner is who has claimed the bucket; Call.Node after a claim that was
	// granted, whose Left then is the level to go on from.
	Owner string
	// Others counts the other nodes that asked lately, by the part of their
	// names before '#'.
	Others int
	// Keep is how long, from Now, the store remembers the key if nobody asks.
	Keep time.Duration
}
