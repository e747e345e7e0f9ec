// Package model tries package limit's shared quotas before anybody believes in
// them: the real Gate, Subject and Cluster of many nodes decide on random
// traffic, over links that delay, lose, reorder and repeat, against the store's
// own semantics (package ledger), while nodes join, leave, stop and die and
// servers step their clocks, fail over and forget. A run takes a fraction of
// the time it plays and comes out the same for the same seed.
//
// # The one idea
//
// Everything runs in a bubble of testing/synctest: time is the bubble's, and
// stands still while anybody works. So the engine under test is the code that
// ships, with its goroutines and timers, and every instant is exact. What was
// admitted is held against the bound over all windows there are, not samples
// of them (Bound.Worst), and against what one exact bucket admits of the same
// messages.
//
// The same traffic goes to the ways that others share a quota (a call for each
// message, counts reported later, a fixed share for each node), so that the
// figures can be compared.
//
// Adversary needs no engine: nodes that do the worst that the store's contract
// allows. It proves the contract; World proves the engine.
//
// # Concurrency
//
// Run must be called in a bubble and leaves no goroutine behind. An Adversary
// is one goroutine on a clock of its own.
//
// # What it does not do
//
// It knows no CPU: messages, calls and the store's work take no time but the
// link's. It speaks no Redis; that the script in Redis does what package ledger
// does is shown by package redisstore. A paused node stops at its messages and
// at the link, not between two instructions.
package model
