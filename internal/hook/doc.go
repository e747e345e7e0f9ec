// Package hook asks a platform's back end over HTTP: it signs what it sends, bounds what that may cost, and tells an answer
// from everything that is none.
//
// The one idea: an [Endpoint] either decodes what the platform said into the caller's answer, or returns a [Failure] that says
// in one word of a closed list what went wrong and whether the platform may have acted. A redirect, a page of HTML with a 200,
// ten megabytes and a byte a second are all no answer.
//
// Concurrency: an Endpoint's methods may be called from any goroutine. No more than Config.InFlight calls are under way and no
// more than Config.Waiting wait for a place, so that a slow endpoint holds only so many goroutines and never another endpoint's.
//
// What it does not do: it knows no gift and no room, decides nothing when there is no answer, and reads nothing from a platform
// by itself but the answer to a ping while an endpoint is away.
//
// Files: endpoint.go (settings, the connection), call.go (one call, its tries, its answer), sign.go (Standard Webhooks), failure.go (what
// can go wrong), metrics.go, trial.go (what every platform is asked before it goes live).
package hook
