package hook

import (
	"context"
	"errors"
	"net"
)

// Outcome says in one word how a call ended.
type Outcome string

// Outcomes of a call, each one an answer or the want of one.
const (
	OK          Outcome = "ok"
	TimedOut    Outcome = "timeout"     // no whole answer in time
	Unreachable Outcome = "unreachable" // no connection, or it broke
	BadStatus   Outcome = "status"      // an HTTP status that is not 200
	Redirected  Outcome = "redirect"    // a 3xx, which is not followed
	TooLarge    Outcome = "too_large"   // a body over [MaxAnswer]
	Rubbish     Outcome = "rubbish"     // a 200 whose body is no answer
	Busy        Outcome = "busy"        // too many calls wait already; nothing was sent
	Away        Outcome = "away"        // the breaker is open; nothing was sent
	Abandoned   Outcome = "abandoned"   // whoever asked went away first
)

// outcomes is the closed list of the metric.
var outcomes = []Outcome{OK, TimedOut, Unreachable, BadStatus, Redirected, TooLarge, Rubbish, Busy, Away, Abandoned}

// Failure is why there is no answer. It holds neither the address nor what was sent or received.
type Failure struct {
	Outcome Outcome
	Status  int // of [BadStatus] and [Redirected]: HTTP's
	// Sent says that the platform may have heard the call. False: it certainly has not.
	Sent bool
	// Why is for the log and for people at a terminal.
	Why error
}

// Error implements error.
func (f *Failure) Error() string { return "hook: " + string(f.Outcome) + ": " + f.Why.Error() }

// Unwrap returns why.
func (f *Failure) Unwrap() error { return f.Why }

// passing reports whether the same call may go well a moment later, so that it pays to try again at once.
func (f *Failure) passing(status int) bool {
	return f.Outcome == Unreachable || f.Outcome == BadStatus && (status == 429 || status >= 500)
}

// broken turns an error of the transport or of reading a body into a failure.
func broken(ctx context.Context, err error) *Failure {
	f := &Failure{Outcome: Unreachable, Sent: true, Why: err}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		f.Sent = false
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		f.Outcome = Abandoned
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		f.Outcome = TimedOut
	}
	return f
}
