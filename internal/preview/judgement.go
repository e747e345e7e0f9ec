package preview

import "fmt"

// The bounds of a change that needs an override.
const (
	// moreThan is how many times as many messages as today's a set may refuse, if those are refusedShare of all.
	moreThan     = 10
	refusedShare = 0.01
	// moreUsers is how many more of all users it may refuse something.
	moreUsers = 0.05
	// enoughUsers is how many sampled users an action needs to be judged by itself.
	enoughUsers = 20
)

// The codes of reasons.
const (
	ReasonMessages = "refuses_more_messages"
	ReasonUsers    = "refuses_more_users"
	ReasonDegrades = "degrades_more_messages"
	ReasonFew      = "little_traffic"
)

// Judgement is what a report says about its proposed set.
type Judgement struct {
	// Override tells that publishing needs one, for each of the Reasons.
	Override bool     `json:"override"`
	Reasons  []Reason `json:"reasons"`
	// Warnings ask for no override.
	Warnings []Reason `json:"warnings"`
}

// Reason is one bound that the set is beyond.
type Reason struct {
	// Code is one of the Reason constants.
	Code string `json:"code"`
	// Action is the one that it is about; empty for all together.
	Action string `json:"action,omitempty"`
	// Text says it in English, with the figures.
	Text string `json:"text"`
}

// Judge judges: a set needs an override when it refuses more than 10 times as many messages as today's and at least
// 1 % of all, or more than 5 % of all users more. This holds for all actions together, and for each of which at least 20
// sampled users were seen, since likes by the million would hide that every gift is refused. Degrading by the same measure
// is a warning.
func (r *Report) Judge() Judgement {
	v := Judgement{Reasons: []Reason{}, Warnings: []Reason{}}
	v.judge("", &r.Today, &r.Proposed)
	for i := range r.Actions {
		if l := &r.Actions[i]; l.Today.Refused.Users.Of >= enoughUsers {
			v.judge(l.Name, &l.Today, &l.Proposed)
		}
	}
	if r.SampledUsers < enoughUsers {
		v.Warnings = append(v.Warnings, Reason{ReasonFew, "", fmt.Sprintf("only %d users were seen", r.SampledUsers)})
	}
	v.Override = len(v.Reasons) > 0
	return v
}

func (v *Judgement) judge(action string, a, b *Outcome) {
	of := "all messages"
	if action != "" {
		of = action + " messages"
	}
	if surge(&a.Refused.Messages, &b.Refused.Messages) {
		v.Reasons = append(v.Reasons, Reason{ReasonMessages, action, fmt.Sprintf("it refuses %s of %s, today's %s",
			percent(b.Refused.Messages.Share), of, percent(a.Refused.Messages.Share))})
	}
	if b.Refused.Users.Share-a.Refused.Users.Share > moreUsers {
		v.Reasons = append(v.Reasons, Reason{ReasonUsers, action, fmt.Sprintf("it refuses %s of the users of %s at least one, today's %s",
			percent(b.Refused.Users.Share), of, percent(a.Refused.Users.Share))})
	}
	if surge(&a.Degraded.Messages, &b.Degraded.Messages) {
		v.Warnings = append(v.Warnings, Reason{ReasonDegrades, action, fmt.Sprintf("it degrades %s of %s, today's %s",
			percent(b.Degraded.Messages.Share), of, percent(a.Degraded.Messages.Share))})
	}
}

func surge(a, b *Proportion) bool { return b.Count > moreThan*a.Count && b.Share >= refusedShare }

func percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }
