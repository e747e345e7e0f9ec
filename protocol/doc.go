// Package protocol is the vocabulary of liveroom: the operations a client sends, the events a server sends, the codes
// and reasons of every answer, the identifiers and the rules for text, and the WebSocket frame that carries them.
//
// The one idea: an event is encoded exactly once, by the node that admits it, and its bytes travel unchanged through
// NATS into every viewer's socket. A tick's events become one [Broadcast], whose bytes all viewers share.
//
// Concurrency: everything here is a value or immutable after construction, except [Batch], which has one owner, and
// [MIDs], which is safe for concurrent use.
//
// What it does not do: it opens no socket, reads no clock, holds no state of a room, and imports no other package of
// liveroom. docs/protocol.md is the same vocabulary in prose; a test compares the two.
package protocol
