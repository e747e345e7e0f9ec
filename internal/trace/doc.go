// Package trace lets operators see into operations: where the time of a call went, and which took too long.
//
// The one idea: what somebody waits for is an [Op] of a closed list of kinds, begun and ended in one place each. An Op is a span of
// OpenTelemetry, if spans are sent at all, and a line of the log, if it took too long; an operator follows the same id from one to the
// other. Nothing on the way of a danmaku to its viewers is an Op: a tick is told of by its length, which is measured anyway.
//
// What a span says is bounded by this package: names, rooms, streams, results. There is no way to have it say a token, a text or an
// error's sentence; these are in the log, under the same id.
//
// Concurrency: all methods may be called from any goroutine, and none waits. Spans go through a bounded queue (export.go) to one
// goroutine; what finds it full is dropped and counted. A nil *[Tracer] traces nothing and tells nobody.
//
// What it does not do: it measures nothing for metrics, which their owners do, and samples by nothing but chance and the caller's word.
//
// Files: tracer.go (settings, operations), export.go (the way to the receiver), slow.go (what took too long), logs.go (ids in the log).
package trace
