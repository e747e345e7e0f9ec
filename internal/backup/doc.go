// Package backup is the form of a backup file: what one node keeps, in one tar archive that ordinary tools list.
//
// The one idea: the archive says what it will hold first and how much it was last, so that one that was cut short or changed is told
// from a whole one before anything is made of it.
//
//	manifest.json              format, version, node, time, and the names of the streams
//	secret                     the secret that tokens are signed with, where the node has one of its own
//	streams/NAME/stream.json   a stream's description
//	streams/NAME/00000001      its content, in pieces
//	end.json                   how many pieces and bytes there were, and their SHA-256
//
// A [Writer] and a [Reader] belong to one goroutine each. What is in a stream, and how it becomes one again, is fanout/store's.
//
// Files: form.go, what the archive holds; write.go; read.go.
package backup
