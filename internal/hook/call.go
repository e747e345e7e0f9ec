package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"liveroom/internal/trace"
)

// MaxAnswer is the longest body of an answer, in bytes: 64 texts of 1 KiB, each letter of which is escaped, and what is around them.
const MaxAnswer = 256 << 10

// Call is one question.
type Call struct {
	ID   string // of the message: the same over all tries
	Type string // what is asked
	Data any    // nil: nothing more
	// Repeat says that the platform knows a call that it has had by what is in it, so that it may be sent again.
	Repeat bool
}

// Answer is what a call is answered with.
type Answer interface {
	// Check returns what is wrong with an answer that could be decoded; nil: nothing.
	Check() error
}

// Done is the answer to what only has to be done.
type Done struct {
	OK bool `json:"ok"`
}

// Check implements [Answer]: a page that somebody else puts before the platform says 200 to everything.
func (d *Done) Check() error {
	if !d.OK {
		return errors.New(`want {"ok":true}`)
	}
	return nil
}

// envelope is the body that is sent, as Standard Webhooks has it.
type envelope struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      any       `json:"data,omitempty"`
}

// Call asks and waits for the answer, which is decoded into answer: at most Config.Timeout, waits and tries together. The error
// is a *[Failure].
func (e *Endpoint) Call(ctx context.Context, c Call, answer Answer) error {
	body, err := json.Marshal(envelope{c.Type, e.cfg.Now().UTC(), c.Data})
	if err != nil {
		return &Failure{Outcome: Rubbish, Why: fmt.Errorf("encode %s: %w", c.Type, err)}
	}
	began := time.Now()
	ctx, op := e.cfg.Trace.Begin(ctx, trace.Hook, c.Type, e.cfg.Name)
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	out := OK
	if failure := e.call(ctx, c, body, answer); failure != nil {
		out, err = failure.Outcome, failure
	}
	e.cfg.Metrics.done(e.cfg.Name, out, time.Since(began))
	op.Result(string(out))
	op.End(err)
	return err
}

func (e *Endpoint) call(ctx context.Context, c Call, body []byte, answer Answer) *Failure {
	report, err := e.breaker.Allow()
	if err != nil {
		return &Failure{Outcome: Away, Why: errAway}
	}
	if failure := e.enter(ctx); failure != nil {
		report(&Failure{Outcome: Abandoned, Why: errBusy}) // says nothing of the endpoint
		return failure
	}
	defer e.leave()
	failure := e.tries(ctx, c, body, answer)
	if failure != nil {
		report(failure)
		return failure
	}
	report(nil)
	return nil
}

// enter takes one of the places for calls under way, and waits for it where not too many do.
func (e *Endpoint) enter(ctx context.Context) *Failure {
	select {
	case e.places <- struct{}{}:
	default:
		if e.waiting.Add(1) > int64(e.cfg.Waiting) {
			e.waiting.Add(-1)
			return &Failure{Outcome: Busy, Why: errBusy}
		}
		defer e.waiting.Add(-1)
		select {
		case e.places <- struct{}{}:
		case <-ctx.Done():
			failure := broken(ctx, errBusy)
			failure.Sent = false
			return failure
		}
	}
	e.cfg.Metrics.inFlight(e.cfg.Name, 1)
	return nil
}

func (e *Endpoint) leave() {
	e.cfg.Metrics.inFlight(e.cfg.Name, -1)
	<-e.places
}

// tryMost is how often one call is sent at most, and tryPause the longest first pause between two of them.
const (
	tryMost  = 3
	tryPause = 100 * time.Millisecond
)

// tries sends the call until there is an answer or it does not pay to go on.
func (e *Endpoint) tries(ctx context.Context, c Call, body []byte, answer Answer) *Failure {
	sent := false
	for n := 1; ; n++ {
		status, failure := e.try(ctx, c, body, answer)
		if failure == nil {
			return nil
		}
		sent = sent || failure.Sent
		failure.Sent = sent
		if !c.Repeat && failure.Sent || !failure.passing(status) || n == tryMost {
			return failure
		}
		select {
		case <-time.After(rand.N(tryPause << (n - 1))):
		case <-ctx.Done():
			return failure
		}
	}
}

// try sends the call once.
func (e *Endpoint) try(ctx context.Context, c Call, body []byte, answer Answer) (status int, _ *Failure) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return 0, &Failure{Outcome: Unreachable, Why: withoutURL(err)}
	}
	req.GetBody = nil // the transport repeats nothing by itself
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "liveroom")
	trace.Tell(ctx, req.Header)
	sign(req.Header, e.cfg.Secrets, c.ID, e.cfg.Now(), body)
	res, err := e.client.Do(req)
	if err != nil {
		return 0, broken(ctx, withoutURL(err))
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return res.StatusCode, &Failure{Outcome: Redirected, Status: res.StatusCode, Sent: true, Why: fmt.Errorf("HTTP status %d, and redirects are not followed", res.StatusCode)}
	case res.StatusCode != http.StatusOK:
		return res.StatusCode, &Failure{Outcome: BadStatus, Status: res.StatusCode, Sent: true, Why: fmt.Errorf("HTTP status %d, want 200", res.StatusCode)}
	}
	said, err := io.ReadAll(io.LimitReader(res.Body, MaxAnswer+1))
	switch {
	case err != nil:
		return res.StatusCode, broken(ctx, withoutURL(err))
	case len(said) > MaxAnswer:
		return res.StatusCode, &Failure{Outcome: TooLarge, Sent: true, Why: fmt.Errorf("a body over %d bytes", MaxAnswer)}
	}
	if err := decode(said, answer); err != nil {
		return res.StatusCode, &Failure{Outcome: Rubbish, Sent: true, Why: err}
	}
	return res.StatusCode, nil
}

// decode reads one JSON object. Its errors do not repeat what was received.
func decode(said []byte, answer Answer) error {
	if trimmed := bytes.TrimSpace(said); len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("the body is no JSON object")
	}
	if err := json.Unmarshal(said, answer); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return fmt.Errorf("%s can't be a %s", kind.Field, kind.Value)
		}
		return errors.New("the body is not well-formed JSON")
	}
	return answer.Check()
}

// withoutURL takes the address away, which may hold what is nobody's business.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// outcomeOf is the outcome of a call that ended with err.
func outcomeOf(err error) Outcome {
	var f *Failure
	if errors.As(err, &f) {
		return f.Outcome
	}
	return OK
}

// mostWords bounds what a platform says to people, in characters.
const mostWords = 200

// Words makes a text of the platform fit to be shown to somebody on one line.
func Words(s string) string {
	s = strings.Join(strings.Fields(strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		if c == unicode.ReplacementChar || unicode.Is(unicode.Bidi_Control, c) {
			return -1
		}
		return c
	}, s)), " ")
	if runes := []rune(s); len(runes) > mostWords {
		s = string(runes[:mostWords-1]) + "…"
	}
	return s
}
