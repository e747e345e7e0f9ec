// Package site serves the embedded pages over HTTP: the lobby, the room, host and admin pages and what they load.
//
// The one idea: everything is known at start. Each file is read, given the words and the parts that it names, hashed and
// compressed once, so a request is a map lookup, and a browser that has the file asks again with its ETag and is told 304.
//
// Concurrency: a [Site] is immutable after construction and safe for concurrent use.
//
// What it does not do: it renders nothing on the server. A page is the same bytes for everybody; who it is for is in
// its address, and tokens stay in the fragment, which browsers do not send.
package site
