// Package cluster makes the rules with cluster: true of limit.Gates hold over
// all nodes: each Gate shares a Cluster, and all Clusters one Store.
//
//	c, err := cluster.New(cluster.Config{Store: store, Node: "n1", Peers: peers, Clock: clock})
//	gate.Share(c) // before the first decision; c.Close gives everything back
//
// # The one idea
//
// Tokens leave the store before they are spent, so that counts never come too
// late: a node is granted some, has them for a quarter of a second, and gives
// back or forfeits the rest.
//
// # What it costs
//
// What everything in memory allows, and only that,
// may wait for the store, at most Config.Budget over all rules; with
// tokens in hand nothing waits and nothing allocates. A busy bucket is drawn
// from at most once in 20 ms and node over time, whatever the demand. A user's
// bucket is claimed at its first message by the node that all its sessions are on
// and is local there; only a user on several nodes costs a call per message. A
// join of a user or an address costs a call and claims nothing, so that it never
// waits for the node where its user was; a rule for joins and messages together
// costs a call for each of either.
//
// # What holds
//
// All nodes together admit at most burst + rate*w in any window of length w, by
// Decision.At, also while nodes join, leave, pause and die. That is strict while
// the store keeps its writes. The exceptions:
//
//   - After a fail-over to a replica that lost the last writes, at most what was
//     granted in them, once.
//   - A store that restarts empty starts the buckets that a node knows, and for
//     as long as one takes to fill all that it does not, at 0. What was granted
//     to others in the moment before that is noticed may come on top, once.
//   - A node that is cut off from the store alone adds its part of an outage, at
//     most rate/nodes, to what the others draw. Where nodes are split into sides
//     that reach the store but not each other, a user on several sides can have
//     its allowance on each until the claims are confirmed, half an hour at most.
//   - A key's clock is the store's, held within what its callers' monotonic
//     clocks allow; a step below Tolerance is not told from a late call.
//
// When its shard of the store does not answer, a rule goes by on_outage. share:
// this node goes on with its part, rate and burst divided by the nodes alive,
// beginning with at most what the bucket was last known to hold; when the store
// is back it is told what was spent, and nodes go on with their parts for a
// second until all have told theirs, so nothing bursts. open: everything passes
// for grace, counted from the first failure, then share. closed: rejections
// that are Unavailable. One late answer is no outage: as long as that is not
// clear, share and closed refuse for a moment what they have no tokens for.
//
// Windows are drawn from in the same way; a fixed window's tokens are void at
// its end, those of a sliding window or log count from when they were granted
// for a lease longer than the window, so that what is used within any window is
// within the quota, and a few percent of it stay unused. A leaky bucket admits
// as the token bucket of its numbers over all nodes, and each node paces what it
// admits itself, at the whole rate. Slots are taken and given back one by one.
// The degrade bucket of a rule is each node's own.
//
// # Concurrency
//
// A Cluster is safe for concurrent use. A subject's parts (leases, slots) are
// guarded by the subject's own lock, which a decision holds anyway; a call is
// prepared and settled under it and sent outside of every lock. A Cluster's
// goroutines, some for each shard, end with its Close.
//
// # What it does not do
//
// It exports no metrics of its own: Cluster.Stats feeds a collector.
//
// Files: cluster.go (the Cluster), peers.go (its configuration, and what it asks of the other nodes), state.go (the states of
// calls, claims and slots), part.go (what leases and slots have in common: outages), lease.go (what a decision asks),
// demand.go, calls.go (a lease's calls), claim.go (a bucket of one node), slots.go (concurrency), lane.go and health.go and
// beat.go (the way to a shard), timing.go (how long all may take), store.go and storecheck.go (what a store is), stats.go.
package cluster
