// Package frame reads and writes what stands on a viewer's socket: WebSocket frames (RFC 6455), and messages that come
// deflated (RFC 7692).
//
// The one idea: a [Reader] can stop behind any byte, and what it has of a message is in a [Message], so that half a frame
// costs its two and no goroutine, no buffer of another's and no decompressor. A broadcast's frames, plain and deflated, are
// made in protocol, once for everybody; here is only what one viewer is sent alone.
//
// # Concurrency
//
// Nothing here locks or waits. A Reader, a Message and [Events] belong to one goroutine at a time.
//
// Files in reading order: reader.go, message.go, deflate.go (the extension's negotiation, and inflating), control.go (close,
// ping and pong), events.go.
package frame
