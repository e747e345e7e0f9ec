// Package rulebook keeps the limits of a running cluster: which set is in force, who made it, and what came before.
//
// The one idea: a set of limits is an edition (package edition) that is judged before it is published and watched after.
// Every node puts each set in force whole, with all levels kept, or not at all.
//
// A [Book] belongs to one node and one [limit.Gate]. With the source "cluster" the store is the authority and the
// configuration's rules only seed an empty one; with "file" the file is, it is looked at every second, and
// [Book.Publish] refuses. A set that can't be read changes nothing and is counted; the last good one stays in force, also
// over a restart without the store, from a copy in the data directory.
//
// Concurrency: all methods of Book may be called from any goroutine. Sets are put in force by one goroutine of the
// book's own; [Book.Close] waits for it.
//
// What it does not do: it decides nothing about messages (package limit does) and does not judge a change (a [Review] does).
//
// Files: config.go (what a book needs), set.go (one version), book.go (in force), publish.go (changed and undone), history.go,
// file.go (the file as the source).
package rulebook
