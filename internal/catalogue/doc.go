// Package catalogue keeps which gifts there are and what they cost, over all nodes.
//
// The one idea: a catalogue is an edition (package edition), and the configuration's is in force until somebody has published one.
//
// Concurrency: all methods of [Book] may be called from any goroutine.
//
// What it does not do: it sells nothing (package room), and charges nobody (package payment).
//
// Files: book.go.
package catalogue
