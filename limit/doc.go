// Package limit is a rate-limiting library for live platforms: token buckets
// that live in what they limit, rules that are data, and a gate that asks any
// number of them and spends from all or from none.
//
// # The one idea
//
// A bucket's state is one integer, the instant at which it will be full,
// counted in units so fine that every rate is exact: three a second or twenty
// in thirty seconds grant their k-th token at its ideal nanosecond, and any
// window of length w admits at most burst + rate*w, whatever the order in
// which callers arrive and however old their readings of the clock are.
//
// # How an owner asks
//
// Whatever is limited embeds a Subject. There is no table to look it up in and
// nothing to clean up: it dies with its owner.
//
//	type Session struct {
//		limits limit.Subject // limit.Subject{Scope: limit.ScopeConn}
//		...
//	}
//
// The server makes one Gate from a rule set and asks it for each request with
// the subjects concerned: the connection, the user, the user in this room, the
// room, in the order of their Scope. All of them are charged, or none is.
//
//	now := gate.Now()
//	d := gate.Decide(now, &limit.Request{Action: limit.Danmaku, Role: role, Room: id, Audience: online},
//		&session.limits, &user.limits, &seat.limits, &room.limits)
//	switch d.Verdict {
//	case limit.Allow:   // publish it
//	case limit.Degrade: // echo it to its sender alone; of likes, count d.Counted
//	case limit.Reject:  // answer d.Scope, d.Rule and limit.Jitter(d.RetryAfter)
//	}
//
// An owner that may come back under the same name, such as a user whose last
// session left, is kept until Subject.Full says that forgetting it refills
// nothing.
//
// # Rules
//
// Parse reads a Spec from YAML or JSON, Default returns the one that ships,
// Compile checks it whole and lists every fault with its path. Gate.Swap puts a
// compiled set in force while decisions go on; levels are kept. A rule in
// shadow only counts, Gate.Explain tells how each stands towards a request, and
// Gate.Counts what each has done.
//
// # Which algorithm
//
//   - token_bucket, unless one of the following is needed: exact, one cell,
//     forgives a pause with a burst.
//   - leaky_bucket, in front of what must not see bursts: admits the same, and
//     Decision.Delay paces it; the wait is at most (burst-1)/rate.
//   - fixed_window, for quotas people read off a clock; two of them fit around
//     a window's end.
//   - sliding_window, for quotas over a long time without that: three cells, and
//     an estimate that takes the past window as evenly spread.
//   - sliding_log, for small quotas that must hold in every window exactly: two
//     cells a token, a thousand at most.
//   - concurrency, for work that lasts: slots until Gate.Release, or for per.
//
// # Over all nodes
//
// A rule with cluster: true holds over all nodes whose Gates share a Cluster
// each, over one Store:
//
//	c, err := limit.NewCluster(limit.ClusterConfig{Store: store, Node: "n1", Peers: peers, Clock: clock})
//	gate.Share(c) // before the first decision; c.Close gives everything back
//
// Tokens leave the store before they are spent, so that counts never come too
// late: a node is granted some, has them for a quarter of a second, and gives
// back or forfeits the rest. What everything in memory allows, and only that,
// may wait for the store, at most ClusterConfig.Budget over all rules; with
// tokens in hand nothing waits and nothing allocates. A busy bucket is drawn
// from at most once in 20 ms and node over time, whatever the demand. A user's
// bucket is claimed at its first message by the node that all its sessions are on
// and is local there; only a user on several nodes costs a call per message. A
// join of a user or an address costs a call and claims nothing, so that it never
// waits for the node where its user was; a rule for joins and messages together
// costs a call for each of either.
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
// The degrade bucket of a rule is each node's own. A connection is on one node
// and has no such form.
//
// # HTTP
//
// Middleware limits a net/http server by route template and verified identity;
// WriteRefusal and SetHeaders write its answers for handlers that ask the Gate
// themselves. Table keeps the subjects of what has no owner, such as addresses.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. A decision locks the
// subjects it was given, in the order of their scopes, for some tens of
// nanoseconds; it starts no goroutine, reads no clock, does no I/O and does
// not allocate, unless it has to wait for a Cluster's store, which it does
// outside of every lock. Time is an argument everywhere. A Cluster's goroutines,
// some for each shard, end with its Close.
//
// # What it does not do
//
// A decision does not queue or sleep (Middleware does, for a leaky bucket's
// delay), and waits for nothing but a shared bucket's store. The package exports no metrics of its own (Gate.Counts feeds
// a collector, and Cluster.Stats another). A Gate without a Cluster knows one
// process: rules marked cluster hold there for this node alone.
package limit
