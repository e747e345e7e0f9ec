// Package redisstore keeps the levels that several nodes share in Redis: it is
// cluster.Store over go-redis, for one server, Sentinel and Cluster, with or
// without TLS.
//
// # The one idea
//
// Each call is one run of one script on one key, so nothing is ever half done:
// the script reads the key, steps it as package limit/internal/ledger does, and
// writes state and time to live with a single SET. All numbers are whole and
// below 2^53. The clock is Redis' own, corrected for the key by what its callers
// have seen (cluster.Call).
//
// A key holds some hundred bytes and always has a time to live. Calls of one
// server share a pipeline. Scripts are called by their hash; where a server does
// not have one, it is loaded there once and the calls are sent again. A failure
// of any kind is the call's Err, never a grant. Nothing else is sent again: a
// call that was lost may have been executed, and its sequence number makes the
// next one right.
//
// # What Redis must be
//
// Redis 6.2 or newer, or Valkey, with Lua scripts allowed. maxmemory-policy
// noeviction (or a volatile one with room to spare): an evicted key is a full
// bucket to whoever did not know it. Replication is asynchronous: after a
// fail-over a bucket may grant again what the replica had not heard of, once.
//
// # Concurrency
//
// A Store is safe for concurrent use. Do waits for one round trip, at most until
// its context ends; Close waits for everything the Store started.
//
// # What it does not do
//
// It has no breaker, no budget and no fallback: those are cluster.Cluster's.
package redisstore
