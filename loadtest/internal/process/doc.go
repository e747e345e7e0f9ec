// Package process starts and ends the programs that a measurement needs, and asks the system what they cost: a [Child] is
// one that is ended in order, and by the kernel when this tool is killed. The [Backing] is what several nodes share, a NATS
// server (this program as its own child) and a Redis. A child's methods are safe for concurrent use.
//
// Files: child.go (a child's life), signal_unix.go, pin_linux.go (processors), backing.go (NATS and Redis), process.go (memory and
// processor time, as /proc has them).
package process
