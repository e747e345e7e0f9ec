// Package lock proves the order of locks. A [Mutex] knows its place in the one order that order.go lists; in a build with
// the race detector, taking one whose place is not behind all that the goroutine holds panics with both stacks, so that any
// test that comes by finds the fault, not only the one that would have met the deadlock. In every other build a Mutex is
// a sync.Mutex and costs nothing more.
//
// Files: order.go, the places; numbers.go, where each stands; mutex.go, the shipped form; proof.go, the form that proves; goroutine_*.go, which tell
// goroutines apart.
package lock
