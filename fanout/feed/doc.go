// Package feed hands each room that has members here what concerns it, in one order, from the bus and from the store.
//
// The one idea: a room's messages come on one subscription, and what is stored is noticed on it. What was lost on the way is found
// by comparing sequences, and read from the store before anything that follows is delivered: a gift by the next gift's previous
// sequence, by another node's presence, by the answer to a repeated id, or by the sweep over all rooms.
// Acts of moderators are read the same way; one that the store has no more is part of the settings.
//
// The calls to one [Handler] are sequential and come from one goroutine, which belongs to the room's subscription; a slow handler
// delays its own room alone.
//
// Another bus in place of NATS is a package with what [Bus] asks for, and the line in fanout's fabric.go that makes it; a test here
// runs two nodes on one.
//
// Files: feed.go, the rooms and what is needed of a bus and a store; subscription.go, one room; chain.go, its gifts; live.go, the bus
// over NATS.
package feed
