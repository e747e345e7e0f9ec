// Package socket is a plain TCP socket below Go's net: one write(2) or read(2) that does not wait, straight on the
// descriptor, and an epoll set for the input of all sockets that nobody reads.
//
// The one idea: Go keeps its sockets non-blocking, so a caller with the number of the descriptor can write to it at half the
// price of net.Conn.Write and wait for input without a goroutine. Whatever is no plain TCP socket has no number here and
// stays with net.Conn; where there is no epoll, a goroutine with the smallest of stacks waits in [Readable].
//
// # Concurrency
//
// Who holds a number sees to it that nothing uses it once the connection is closed, since it may be another's by then. A
// [Poller] is safe for concurrent use; its mutex is a leaf. A [Reader] belongs to one goroutine.
//
// Files: reader.go, carrier.go (what is beneath TLS), socket_*.go by system, poller_*.go.
package socket
