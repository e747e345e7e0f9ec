// Package journal reads everything that was admitted, in the order of each room, for platforms' back ends.
//
// The one idea: nothing is stored twice for it. It lies in four [Log]s that the store has anyway or keeps beside the path, each with an
// order of its own; a page is these logs merged by the instants at which they took what they hold, and a [Cursor] is one position in each. So
// a gift is never pushed out by danmaku, every log keeps as long as it is worth, and what is of one log and room never changes its order.
//
// A cursor never skips. What it points at may have aged out, or lie in a log that was made anew or lost its end in a crash: then the page
// has an entry of kind gap, that says how much is missing and since when, before what follows it. Entries come at least once and have ids.
//
// A [Consumer] is a reader whose place is kept under a name, by a [Keeper]: whoever changes it says which record he knew, so that two who read
// for one are told, and nobody's place is lost between them.
//
// Concurrency: a [Journal]'s methods may be called from any goroutine. It starts none and keeps nothing between two calls.
//
// What it does not do: it stores nothing, and knows neither NATS nor HTTP.
//
// Files: entry.go, what a reader gets; cursor.go, where he is; merge.go, a page; log.go, one log within a page; metrics.go; consumer.go, readers with
// names.
package journal
