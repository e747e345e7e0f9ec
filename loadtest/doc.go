// Command loadtest loads a live room as its viewers would and says what they saw.
//
//	go run ./loadtest fanout -spawn 1 -viewers 1000 -rate 20
//	go run ./loadtest pulse -url http://live.example -secret … -slo p99=200ms,gift_loss=0
//
// The one idea: a schedule of attempts is fixed before the first one is sent, and every latency counts from the instant
// an attempt was due, so that a server that stalls can't slow the questions down and look better for it (an open loop;
// what the field calls coordinated omission is the opposite). Readers are cheap enough that thousands of viewers fit on
// one core: a viewer is a descriptor in an epoll set, frames are skimmed by byte scanning, and a frame that another
// viewer of the same reader has already brought is recognised by comparison instead of being read again.
//
// Concurrency: each reader ([epollLoop], or a goroutine per socket) owns the inbound half of its sessions and records
// into its own [sink], under that sink's mutex; the [speaker] is one goroutine; everything a [trial] fixes before it
// starts is shared without locks.
//
// What it does not do: it is a black box that knows package protocol alone, so it measures a server from outside and
// can't tell which part of it was slow. `ts` and its own clock are compared directly: latency since admission is right
// on one host, or between hosts whose clocks agree.
package main
