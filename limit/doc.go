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
// A rule with cluster: true holds over all nodes once the Gate has a Sharer:
// package limit/cluster is one. The Gate asks it, by the small interface Part,
// what a bucket says that nodes share, and knows nothing of how they do it; what
// nodes have in common hangs on the Subject. Without a Sharer this node is all
// there is. A connection is on one node and has no such form.
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
// not allocate, unless it has to wait for other nodes, which it does outside of
// every lock. Time is an argument everywhere.
//
// # What it does not do
//
// A decision does not queue or sleep (Middleware does, for a leaky bucket's
// delay), and waits for nothing but a bucket that nodes share. The package exports
// no metrics of its own: Gate.Counts feeds a collector.
//
// Files: in reading order decide.go, subject.go, tokenbucket.go, trial.go, rule.go, shared.go are the road of Gate.Decide.
// Around it: action.go and decision.go (the words), gate.go, rules.go, traits.go (rules for users with some attributes), instant.go, counts.go, observe.go, explain.go.
// What counts: algorithm.go (the interface and the table), tiers.go, leakybucket.go, fixedwindow.go, slidingwindow.go,
// slidinglog.go, concurrency.go. Rules as data: spec.go, parse.go, tree.go, compile.go, check.go, crowd.go (shares of a room).
// What nodes share: quota.go (a rule's numbers), own.go (what a Part has of its subject), key.go. For servers: table.go,
// middleware.go, refusal.go, clientaddr.go, abuse.go.
package limit
