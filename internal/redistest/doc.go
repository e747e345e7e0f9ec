// Package redistest gives tests real Redis servers, and a proxy in front of them
// that delays, swallows, cuts and duplicates.
//
// Servers are redis-server (or valkey-server) from PATH, each on a free port of
// the loopback with its own directory, and are killed when the test ends. Where
// there is none the test fails and says how to install it. Only tests import
// this package. Everything is safe for concurrent use.
package redistest
