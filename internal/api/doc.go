// Package api is the HTTP API below /api/v1: what a platform's back end, a host and an operator ask of the rooms.
//
// The one idea: a call that speaks for a user becomes the same protocol.Request that a socket carries and goes through
// the same room, so gates, first answers and idempotency are one. What HTTP adds is around it: bearer tokens, strict
// bodies, status codes, and 429 with the headers of draft-ietf-httpapi-ratelimit-headers-10.
//
// Concurrency: an [API] is immutable after construction and safe for concurrent use; it starts no goroutine.
//
// Files: routes.go (the calls, and who may make them), around.go and measure.go (what is around each), request.go and answer.go (what is read and
// written; every handler returns its answer or its error), api.go (what a call costs), then the calls: rooms.go, people.go, summary.go, speak.go, events.go,
// held.go, filter.go, ledger.go, journal.go, consumers.go, nodes.go, rules.go, gifts.go (the catalogue), quota.go, revoke.go.
//
// What it does not do: it holds no state of a room and decides no limit itself. Calls that a later version will have
// are not registered; they answer 404.
package api
