// Package edition keeps what all nodes of a cluster go by whole: which edition of it is in force, who made it, and what came before. The
// limits and the catalogue of gifts are kept so.
//
// The one idea: the store orders editions by version and takes a new one only on top of the version that its author saw; every node
// follows the store and puts each edition in force whole or not at all.
//
// A [Keeper] belongs to one node. The store is the authority, and the configuration's content seeds an empty one. An edition
// that can't be read changes nothing and is counted; the last good one stays in force, also over a restart without the store, from a
// copy in the data directory.
//
// Concurrency: all methods of Keeper may be called from any goroutine. Editions are put in force one after the other;
// [Keeper.Close] waits for the goroutine that brings them.
//
// What it does not do: it does not know what the content means, nor who may change it.
//
// Files: story.go (one edition), config.go (what a keeper needs), keeper.go (in force), publish.go (changed and undone), history.go, diff.go,
// keep.go (the copy for a start without the store), metrics.go.
package edition
