// Package people counts the persons of a room, whatever number of windows each has: who is there now, who has been there in the show,
// the most at a time, and what each minute saw.
//
// The one idea: everything that nodes tell one another of a room is a set or a maximum. So it may be merged in any order and any
// number of times, by whoever meets it: what another node counts comes with presence, and a show's record lies in the store, where each
// node that has members of the room merges what it knows into it.
//
// # What is exact
//
// A person is a user id, guests' included. Persons are known by a 64-bit hash of it. Of a node's own persons the number is always
// exact. Those that have windows on several nodes are found in samples of [sampleMost] hashes for each node (adaptive sampling: Flajolet,
// 1990): exact as long as a node has no more than that, beyond it the number of these doubles alone is an estimate. Persons of a show are
// a set of up to [exactMost] hashes, beyond it a HyperLogLog of 16,384 registers, off by 0.8 % (one standard error).
//
// # Shows
//
// A show begins with the room's opening and ends with its closing. Of a room that nobody opens or closes it begins with the first who
// comes in, and is over when nobody was there for an hour, or after a day. See [Show.over].
//
// # What survives
//
// The record in the store. A show's persons and its peak are told as far as they are stored, so that no death of a node lets them
// fall; what a node counted since its last writing is lost with it, unless another node has counted it too.
//
// # Concurrency
//
// A [Census] is safe for concurrent use; its lock is a leaf. Everything else is its caller's.
//
// Files: census.go, one room's persons on one node; crowd.go, what nodes tell of now; set.go, persons of a show; show.go, a show and
// its merging; record.go, what is stored.
package people
