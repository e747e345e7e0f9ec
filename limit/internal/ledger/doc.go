// Package ledger is the shared store of package limit in plain Go: what a call
// does to a key, as exact as the script that package redisstore runs inside
// Redis, with the server's clock and the server's faults in the test's hands.
//
// # The one idea
//
// step is a pure function from a key's state, a call and a reading of the
// server's clock to the next state and a reply. Redis runs the same function in
// Lua; a test compares both on random calls, state for state. Whoever wants to
// know what a store does reads this package.
//
// # What holds
//
// For a bucket, at every instant of the key's clock,
//
//	level + outstanding <= size
//
// where outstanding is what nodes may still spend as far as the store knows,
// which is never less than the truth. The sum rises by at most num shares in
// den microseconds and everything spent lowers it, so that all nodes together
// spend at most size + rate*w in any window w. Nothing is reserved for floats
// in hand: a quiet room has its whole burst.
//
// A key's clock never runs faster than real time, by more than Tolerance once
// for a step that no caller could tell, and never backwards. It may stand still.
//
// # Concurrency
//
// A Ledger is safe for concurrent use; each call is one atomic step. It starts
// no goroutine and waits for nothing.
//
// # What it does not do
//
// It has no link: delay, loss and reordering are the caller's (package model).
// It is no store for a server, only for tests.
package ledger
