package preview

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"liveroom/limit"
)

// Report compares two rule sets on the same traffic. Its JSON form is part of the API: names are never changed.
type Report struct {
	TodayVersion    int64 `json:"today_version"`
	ProposedVersion int64 `json:"proposed_version"`

	// From, To and Seconds are the traffic that was counted.
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Seconds float64   `json:"seconds"`
	Nodes   []string  `json:"nodes"`
	// Messages is everybody's requests in that time, SampledMessages those of the sampled users. A frame and the
	// message in it are one.
	Messages        int64 `json:"messages"`
	SampledMessages int64 `json:"sampled_messages"`
	// Users is estimated from SampledUsers and the share of users that is sampled.
	Users        int64   `json:"users"`
	SampledUsers int64   `json:"sampled_users"`
	SampledShare float64 `json:"sampled_share"`
	// Dropped is what the recorders could not keep since they started.
	Dropped Dropped `json:"dropped"`

	Today    Outcome `json:"today"`
	Proposed Outcome `json:"proposed"`
	// NewlyRefused is users whom only the proposed set refuses something.
	NewlyRefused Proportion `json:"newly_refused_users"`

	// Actions are told apart, each with shares of its own messages and users; a frame that was refused in reality is
	// of action "frame", since what was in it is not known.
	Actions []Line `json:"actions"`
	// Rules that refuse or degrade in either set, with shares of all messages and users. A refusal counts at the rule
	// that refuses for longest. The worst proposed ones come first.
	Rules []Line `json:"rules"`

	// Unjudged are rules of either set whose buckets are not replayed: those per address, network and API key,
	// those that count slots, and those with where while a node of an earlier version, which does not tell attributes, has a part in the traffic.
	Unjudged []string `json:"unjudged_rules"`
	// Notes say what the figures leave out.
	Notes []string `json:"notes"`
}

// Outcome is what a set makes of the traffic.
type Outcome struct {
	Refused  Figures `json:"refused"`
	Degraded Figures `json:"degraded"`
}

// Figures are shares of messages, and of the distinct users whom it happens to at least once.
type Figures struct {
	Messages Proportion `json:"messages"`
	Users    Proportion `json:"users"`
}

// Line is an action, or a rule with its scope.
type Line struct {
	Name     string  `json:"name"`
	Scope    string  `json:"scope,omitempty"`
	Today    Outcome `json:"today"`
	Proposed Outcome `json:"proposed"`
}

// MarshalJSON writes the report with its judgement, under "verdict".
func (r *Report) MarshalJSON() ([]byte, error) {
	type fields Report
	return json.Marshal(struct {
		*fields
		Judgement Judgement `json:"verdict"`
	}{(*fields)(r), r.Judge()})
}

var notes = []string{
	"Nobody retries, or stops retrying, because of an answer that differs from the real one: changed retries are not modelled.",
	"Users and rooms have one bucket over all nodes here.",
}

const (
	noteApproximate = "Users that are not sampled press on the rooms' buckets as anonymous requests, in short steps, at the share that the personal limits of sampled users let through. The interval covers the choice of users, not this."
	noteFlood       = "Requests beyond 100 a second of one user are such load too."
	noteCut         = "The buckets start full before the counted time, in the traffic of up to 30 s before it."
)

// sum sums what the users of the sample met, in all and by the lines of a report. A rule's are of all messages.
func (c *comparison) sum() (all sums, lines map[line]*sums) {
	lines = map[line]*sums{}
	for _, t := range c.users {
		if t.all.n == 0 || !inSample(t.hash, c.level) {
			continue
		}
		all.add(&t.all, t.all.n)
		for i := range t.lines {
			l := &t.lines[i]
			if lines[l.line] == nil {
				lines[l.line] = &sums{}
			}
			n := l.n
			if l.rule {
				n = t.all.n
			}
			lines[l.line].add(&l.counts, n)
		}
	}
	for of, s := range lines {
		if of.rule {
			s.whose = all.whose
		}
	}
	return all, lines
}

func (c *comparison) report(rec *Recording, todays, proposal *limit.Rules) *Report {
	all, lines := c.sum()
	sampled := share(c.level)
	r := &Report{
		TodayVersion: todays.Version(), ProposedVersion: proposal.Version(),
		From: time.Unix(0, c.count).UTC(), To: time.Unix(0, rec.end()).UTC(), Seconds: max(time.Duration(rec.end()-c.count).Seconds(), 0),
		Nodes: slices.Clone(rec.Nodes), Messages: all.n + c.load, SampledMessages: all.n, SampledUsers: all.users, SampledShare: sampled,
		Users: int64(float64(all.users)/sampled + 0.5), Dropped: rec.Dropped,
		Today: all.outcome(today, sampled), Proposed: all.outcome(proposed, sampled),
		NewlyRefused: userShare(all.newly, all.users, sampled),
		Unjudged:     unjudged(rec.Attrs, todays, proposal), Notes: slices.Clone(notes),
		Actions: []Line{}, Rules: []Line{},
	}
	for of, s := range lines {
		l := Line{Name: of.name, Today: s.outcome(today, sampled), Proposed: s.outcome(proposed, sampled)}
		if of.rule {
			l.Scope = of.scope.String()
			r.Rules = append(r.Rules, l)
			continue
		}
		r.Actions = append(r.Actions, l)
	}
	r.finish(rec)
	return r
}

func (r *Report) finish(rec *Recording) {
	slices.SortFunc(r.Actions, func(a, b Line) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(r.Rules, func(a, b Line) int {
		return cmp.Or(
			cmp.Compare(b.Proposed.Refused.Messages.Count, a.Proposed.Refused.Messages.Count),
			cmp.Compare(b.Proposed.Degraded.Messages.Count, a.Proposed.Degraded.Messages.Count),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Scope, b.Scope),
		)
	})
	if r.SampledShare < 1 {
		r.Notes = append(r.Notes, noteApproximate)
	}
	if r.Dropped.Flood > 0 {
		r.Notes = append(r.Notes, noteFlood)
	}
	if rec.Cut {
		r.Notes = append(r.Notes, noteCut)
	}
}

// unjudged lists the rules of either set whose buckets a comparison has not got.
func unjudged(attrs bool, sets ...*limit.Rules) []string {
	names := []string{}
	for _, set := range sets {
		for _, rule := range set.All() {
			switch scope, _ := limit.ParseScope(rule.Scope); {
			case scope == limit.ScopeIP, scope == limit.ScopeNet, scope == limit.ScopeNetRoom, scope == limit.ScopeKey, rule.Algorithm == "concurrency":
				names = append(names, rule.Name)
			case len(rule.Where) > 0 && !attrs:
				names = append(names, rule.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
