package hook

import (
	"context"
	"errors"
	"fmt"
)

// Asker asks a platform: an [Endpoint].
type Asker interface {
	// Call asks; its error is a *[Failure].
	Call(ctx context.Context, c Call, answer Answer) error
}

var _ Asker = (*Endpoint)(nil)

// Trial asks a platform what a running node would, and what it must refuse, and tells what is wrong with the answers.
type Trial struct {
	Platform Asker  // signed as it will be
	Forged   Asker  // signed by a secret that the platform does not know
	Stale    Asker  // signed an hour ago
	ID       string // of the sample, another one each time
	// Tell is told of each step, with what is wrong; nil: nothing.
	Tell func(step string, wrong error)

	bad bool
}

// Step tells of a step and reports whether nothing was wrong.
func (t *Trial) Step(step string, wrong error) bool {
	t.bad = t.bad || wrong != nil
	t.Tell(step, wrong)
	return wrong == nil
}

// Good reports whether nothing was wrong with any step.
func (t *Trial) Good() bool { return !t.bad }

// Signatures takes the steps that are the same for every hook. It reports whether it makes sense to go on.
func (t *Trial) Signatures(ctx context.Context) bool {
	if !t.Step("ping is answered", t.Platform.Call(ctx, Call{ID: "ping_" + t.ID, Type: "ping"}, &Done{})) {
		return false
	}
	t.Step("what an unknown secret signed is refused", refused(t.Forged.Call(ctx, Call{ID: "forged_" + t.ID, Type: "ping"}, &Done{})))
	t.Step("what was signed an hour ago is refused", refused(t.Stale.Call(ctx, Call{ID: "stale_" + t.ID, Type: "ping"}, &Done{})))
	return true
}

// refused turns the answer to a call that must not be answered into what is wrong with it.
func refused(err error) error {
	var f *Failure
	switch {
	case err == nil:
		return errors.New("it is answered: check webhook-signature and webhook-timestamp")
	case errors.As(err, &f) && f.Outcome == BadStatus:
		return nil
	}
	return fmt.Errorf("want a status that is not 200, such as 401: %w", err)
}
