// Package conn is one viewer's socket: accept, hello, read path, send queue, write path, heartbeat and close.
//
// The one idea: a broadcast is bytes that all viewers share, and a healthy viewer takes them with one non-blocking
// write(2) in the caller's own goroutine, straight on the descriptor. coder/websocket does the handshake and no more; whole
// frames never interleave, since all that writes holds the same mutex. Only what the kernel did not take goes to the
// session's bounded queue and to a writer goroutine that lives as long as the queue. TLS and whatever is no plain TCP
// socket always take the queue.
//
// A viewer of whom nothing comes costs no goroutine and no buffer (Linux), wherever in a frame its input stopped: the
// reader of frames can stop behind any byte, and what it has of a message stays with the session. So half a frame
// holds nothing that another viewer needs. One poller waits for the input of all that rest, in an epoll set, and gives each
// that has some to a reader. On other unixes a goroutine of 2 KB waits in its place. TLS that is laid over a [socket.Carrier]
// stops behind any byte too; what it has of a record, and its keys, stay with it. On Windows every session keeps its reader.
//
// Whatever comes is a frame, and each frame is spent on the [Meter]: messages, fragments, pings, pongs. A message of several
// frames costs several.
//
// # Concurrency
//
// An [Acceptor] and a [Session] are safe for concurrent use. At most one goroutine at a time reads for a session; it alone
// calls the session's [Seat], and what it owns passes through Session.mu to the next one when the session rests. There are
// as many readers as sessions have input at this moment, so that a seat that takes its time holds nobody up.
// [Session.Deliver], [Session.Control], [Session.Open] and [Session.Close] never wait for the peer and never call back, so
// a room may call them while it holds its own locks. Deliveries of one session keep the order of the calls. Every goroutine
// is waited for by [Acceptor.Shutdown].
//
// The order of locks is package lock's: a room's locks, Session.mu, readers.mu. Session.mu covers slice work, the non-blocking write(2) and shutdown(2), and nothing that can
// wait; what is sent is encoded before it is taken.
//
// A session is at two named states, each moved by one function along a table: its stage, which tells what may be sent and
// goes forward only, and its turn, which tells who is to act and whether a goroutine reads. What reads, what writes, how it
// ends and what the sweeper knows are structs of their own.
//
// # What a slow viewer gets
//
//	control   own lane ahead of broadcasts; over its bound the session ends with 4001
//	gift      queued up to the hard bound, then the session ends with 4001 and the client resumes
//	danmaku   left out while the queue is over its bound, counted, announced as one missed with the exact number
//	like      left out likewise; the newest one follows the missed
//
// # What it does not do
//
// It knows no rooms, users, tokens or rules: the [Lobby] seats a session, the [Meter] decides about its frames, and the
// wiring says which addresses may connect. It compresses nothing by itself: a broadcast brings its deflated form along, which
// all share who have negotiated permessage-deflate, and what is for one viewer alone goes out as it is.
//
// Files: config.go (what an acceptor is given), acceptor.go, upgrade.go (the handshake); session.go, state.go;
// read.go, rest.go, readers.go (who reads); deliver.go, queue.go, write.go (what is sent); close.go, heartbeat.go (deadlines and the
// heartbeat), metrics.go. Below: conn/frame for what stands on the wire, conn/socket for the kernel's side.
package conn
