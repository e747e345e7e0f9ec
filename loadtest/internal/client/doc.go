// Package client is viewers by the thousand, and what they were owed.
//
// The one idea: readers are cheap enough that thousands of viewers fit on one core. A viewer is a descriptor in an epoll
// set, and a frame that another viewer of the same reader has already brought is recognised by comparison instead of being
// read again. Frames are read by code of this package's own, so that it shares no fault with the server's.
//
// Concurrency: each reader (an epoll loop, or a goroutine per socket where TLS or the system wants it) owns the inbound half
// of its sessions and records into its own [Sink], under that sink's mutex; a [Speaker] is one goroutine; everything a
// [Trial] fixes before it starts is shared without locks. A [Crowd] and a [Dialer] are safe for concurrent use.
//
// Files: sent.go (what viewers send), serverframe.go (what a server sends, at whatever byte it is cut), dialer.go, digest.go (what a
// frame says), sink.go (what one reader's viewers saw), viewer.go (one viewer), readers.go, epoll_linux.go,
// reader_goroutine.go, platform_linux.go, crowd.go (viewers that come and go together); schedule.go (when attempts are due),
// attempts.go (what became of each), latency.go, figures.go (what was owed and what came).
package client
