// Package admit decides who and what may come in: addresses and the networks around them, connections for which there are
// descriptors, frames, new rooms, and anybody at all while memory and time are left. It is also the one place where a
// [limit.Decision] becomes a [protocol.Error]; docs/limits.md has the table.
//
// The one idea: coming in is decided below rooms, sockets and API, which ask and obey. So this package imports none of them.
//
// Concurrency: everything is safe for concurrent use, but [LagProbe.Read], which is one goroutine's. Locks are leaves.
//
// Files: words.go (what a refusal is called), arrivals.go (addresses, new rooms), doorkeeper.go (connections and descriptors),
// proxied.go (who a proxy speaks for), framerate.go (frames), headroom.go (memory, lag).
package admit
