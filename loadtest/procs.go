package main

import "runtime"

// moreProcs gives the Go scheduler a P for each reader and some more, even on one processor. A reader sits in
// epoll_wait with its P; on GOMAXPROCS(1) the speaker would wait up to 10 ms until the runtime takes that P away.
func moreProcs(readers int) (restore func()) {
	before := runtime.GOMAXPROCS(0)
	if before >= readers+4 {
		return func() {}
	}
	runtime.GOMAXPROCS(readers + 4)
	return func() { runtime.GOMAXPROCS(before) }
}
