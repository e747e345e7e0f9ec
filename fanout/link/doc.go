// Package link is a node's way to NATS: two connections, the server embedded in the process where there are no others, what is
// read of streams, and what tells whether all of this works.
//
// The one idea: a connection that stands proves nothing. Messages to ourselves tell whether anything is delivered, a message of
// each class whether it is allowed, and a look at the store in each period whether this node is at what others decided.
//
// What others decide (limits, revocations, settings, secrets, who is there, what rooms have missed) is followed by one
// kind of loop: a look at the store in each period, on news and after each return of a connection. Until its first complete
// look after a return, and when the last one is too old, a follower does not stand, and [Link.Follows] says so.
//
// NATS tells of a missing permission later and to nobody. Each class of subjects is tried at the start and then
// over the same subjects and operations; what is known to be shut is [ErrForbidden].
//
// All methods of [Link] may be called from any goroutine. What a follower reads is read by its one loop.
//
// Files: link.go, the connections; embedded.go and embedded_nonats.go, the server in the process; dirlock_*.go, one server per
// directory; probe.go, messages to ourselves, and what is counted; roads.go, what NATS lets us do; follow.go, what others decide;
// direct.go, reading streams; subjects.go, all names at NATS; loop.go, rounds of work.
package link
