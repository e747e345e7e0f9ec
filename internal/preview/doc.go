// Package preview tells what a set of limits would do to the traffic of the last minutes, before it is published, and
// undoes a set that turns out to refuse too many, after it was.
//
// The one idea: nothing is modelled that can be run. A [Recorder] keeps what the gate was asked, each request of a
// hash-sampled share of users and everybody else's summed in short steps; [Replay] asks two real gates, one with today's rules
// and one with the proposed, the same questions on a virtual clock; a [Guard] does the same with the traffic since a publish
// and the set before it.
//
// What is exact and what is not: connection, user and user-in-room buckets of a sampled user see that user's requests
// exactly. Buckets of rooms and the global one also see everybody else's, as anonymous requests spread evenly over their
// step, of which only the share goes in that the personal limits of the sampled users let through in the same gate
// (per action and role). With every user sampled nothing is left to approximate. A user or room has one bucket over
// all nodes. Rules per address, network and API key and rules that count slots are not judged; a report lists them. A sampled user has the
// attributes that were seen last; the others have, in turn, those of the sampled users of their action and role. Nobody
// is made to retry, or to stop retrying, by an answer that differs from the one given in reality.
//
// Memory: a Recorder holds at most 64 MiB. When that is short the sampled share is halved, by a bit of the hash,
// so that nodes with different shares have users in common, and the steps, 10 ms to begin with, are doubled; when even that
// does not help, the oldest traffic goes. Both are counted. The share grows again when the flood is over.
//
// Concurrency: everything exported is safe for concurrent use, except that a Report is a plain value. A Recorder locks
// one of 16 shards, chosen by the user's hash; lock order: Recorder.mu after a shard's. A [Recording] is immutable. A
// Guard is one goroutine, [Guard.Run], which its caller owns.
//
// What it does not do: it sends nothing over the network (the wiring gathers recordings from the nodes), stores nothing,
// and publishes nothing; [Book] undoes, with the store's own compare-and-set.
//
// Files: recorder.go and shard.go (what is kept), traffic.go and wire.go (as one piece, merged, sent), replay.go and side.go
// (played through two gates), report.go, estimate.go and judgement.go (what came of it), guard.go.
package preview
