// Package presence knows which nodes are there, and how many members a room has on them.
//
// The one idea: a node says of itself with each beat what has changed, and everything every 15th beat and when somebody asks, who
// has missed one. 10,000 rooms are 434 KB whole (14 KB/s); of changes a tenth of the rooms each beat are 21 KB/s, all of
// them 217 KB/s, none 34 B/s. Nothing is stored, so nothing can be left behind, and nothing depends on clocks that agree:
// instants are the receiver's own.
//
// Nodes on the same NATS servers must share their quota store and have ids of their own. A node that starts asks who is
// there and is refused otherwise ([ErrNotShared], [ErrNodeTaken]); a crashed node answers nothing, and its id is free
// at once. Of nodes that start in the same moment the later ones learn it from presence and must end, see
// [Presence.Ended]. So must a node that was paused or cut off while another was let in under its id.
//
// All methods of [Presence] may be called from any goroutine.
//
// Files: presence.go, what is said and heard; samples.go, who is on several nodes; roster.go, what is known of the others; identity.go, who may live beside whom.
package presence
