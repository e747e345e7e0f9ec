package limit

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// refRule decides for one rule of one subject with reference buckets.
type refRule struct {
	rule   Rule
	scope  Scope
	main   *refBucket
	second *refBucket
}

type refAnswer struct {
	outcome outcome
	counted int64
	left    int64
	wait    time.Duration
	tokens  *big.Rat
	from    *refBucket
}

func (r *refRule) ask(now Instant, q *Request) refAnswer {
	if slices.Contains(r.rule.Exempt.Roles, q.Role) {
		return refAnswer{outcome: outcomeExempt, counted: q.Cost}
	}
	cost, times := int64(1), int64(1)
	if r.rule.Cost == "count" {
		cost = q.Cost
	}
	if n, ok := r.rule.Multiply[q.Role]; ok {
		times = n
	}
	if r.rule.Fold {
		have := r.above(now, q)
		counted := min(cost, max(floor(have.Mul(have, tokens(times, 1))), 0))
		a := r.paid(r.main, now, q, counted, times)
		if a.counted = counted; counted < cost {
			a.outcome = outcomeDegrade
		}
		return a
	}
	a := r.paid(r.main, now, q, cost, times)
	if a.wait == 0 || r.second == nil {
		return a
	}
	b := r.paid(r.second, now, q, cost, times)
	if b.wait == 0 {
		b.outcome = outcomeDegrade
		return b
	}
	b.wait = min(a.wait, b.wait)
	return b
}

// above returns the tokens above the floor.
func (r *refRule) above(now Instant, q *Request) *big.Rat {
	return new(big.Rat).Sub(r.main.at(now), tokens(r.rule.Floor[q.Action.String()], 1))
}

func (r *refRule) paid(b *refBucket, now Instant, q *Request, cost, times int64) refAnswer {
	a := refAnswer{counted: q.Cost, tokens: tokens(cost, times), from: b}
	reserve := new(big.Rat)
	if b == r.main {
		reserve = tokens(r.rule.Floor[q.Action.String()], 1)
	}
	if cost > 0 {
		a.wait = b.wait(now, new(big.Rat).Add(a.tokens, reserve))
	}
	if a.wait > 0 {
		a.outcome = outcomeReject
		return a
	}
	left := new(big.Rat).Sub(b.at(now), reserve)
	left.Sub(left, a.tokens)
	a.left = max(floor(left.Mul(left, tokens(times, 1))), 0)
	return a
}

// model is a Gate with four subjects, and the same by the book.
type model struct {
	gate     *Gate
	now      Instant
	subjects []*Subject
	rules    []*refRule
	version  int64
}

var modelScopes = []Scope{ScopeConn, ScopeUser, ScopeUserRoom, ScopeRoom}

func drawSpec(t *rapid.T, version int64) *Spec {
	spec := &Spec{Version: version}
	for i := range rapid.IntRange(1, 6).Draw(t, "rules") {
		name := fmt.Sprintf("r%d", i)
		r := Rule{
			Name:   name,
			Scope:  modelScopes[i%len(modelScopes)].String(),
			Action: rapid.SampledFrom([]StringList{{"danmaku"}, {"like"}, {"danmaku", "like", "gift"}}).Draw(t, name+".action"),
			Limit:  drawLimit(t, name),
		}
		r.Cost = rapid.SampledFrom([]string{"1", "count"}).Draw(t, name+".cost")
		switch rapid.IntRange(0, 3).Draw(t, name+".kind") {
		case 0:
			second := drawLimit(t, name+".degrade")
			r.Degrade = &second
		case 1:
			r.Fold, r.Cost = true, "count"
		case 2:
			if r.Burst > 1 {
				r.Floor = map[string]int64{r.Action[0]: rapid.Int64Range(0, r.Burst-1).Draw(t, name+".floor")}
			}
		}
		switch rapid.IntRange(0, 3).Draw(t, name+".role") {
		case 0:
			r.Exempt.Roles = StringList{"host"}
		case 1:
			r.Multiply = map[string]int64{"host": rapid.SampledFrom([]int64{1, 3, 5}).Draw(t, name+".times")}
		}
		spec.Rules = append(spec.Rules, r)
	}
	// Covers every action where nobody asks, so that no default rule is added.
	spec.Rules = append(spec.Rules, Rule{Name: "elsewhere", Scope: "global", Action: actionNames[:], Limit: Limit{Rate: 1, Burst: 1}})
	return spec
}

func compileOrFatal(t *rapid.T, spec *Spec) *Rules {
	rules, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func newModel(t *rapid.T) *model {
	m := &model{now: Instant(rapid.Int64Range(-1e17, 1e17).Draw(t, "start"))}
	spec := drawSpec(t, 0)
	m.gate = NewGate(compileOrFatal(t, spec), func() Instant { return m.now })
	for _, scope := range modelScopes {
		m.subjects = append(m.subjects, &Subject{Scope: scope})
	}
	m.load(spec, nil)
	return m
}

// load makes the reference follow a set; old rules of the same name and scope
// hand their levels on.
func (m *model) load(spec *Spec, old []*refRule) {
	m.rules = nil
	compiled := m.gate.Rules()
	for _, rule := range spec.Rules {
		scope, _ := ParseScope(rule.Scope)
		r := &refRule{rule: rule, scope: scope, main: newRef(rule.Limit, m.now)}
		if rule.Degrade != nil {
			r.second = newRef(*rule.Degrade, m.now)
		}
		for _, was := range old {
			if was.rule.Name != rule.Name || was.scope != scope || !m.asked(scope) {
				continue
			}
			now := compiled.byName[rule.Name]
			was.main.reload(rule.Limit, m.now, now.meter.shares(nil).whole)
			r.main = was.main
			if r.second != nil && was.second != nil {
				was.second.reload(*rule.Degrade, m.now, now.second.whole)
				r.second = was.second
			}
		}
		m.rules = append(m.rules, r)
	}
}

// asked tells whether the scope's subject has levels to keep.
func (m *model) asked(scope Scope) bool {
	return slices.ContainsFunc(m.subjects, func(s *Subject) bool { return s.Scope == scope && s.gen != nil })
}

func (m *model) decide(t *rapid.T) {
	q := &Request{
		Action: rapid.SampledFrom([]Action{Danmaku, Like, Gift}).Draw(t, "action"),
		Role:   rapid.SampledFrom([]string{"viewer", "host"}).Draw(t, "role"),
		Cost:   rapid.SampledFrom([]int64{0, 1, 2, 7, 30}).Draw(t, "cost"),
	}
	var asked []*Subject
	for i, s := range m.subjects {
		if rapid.IntRange(0, 3).Draw(t, modelScopes[i].String()) > 0 {
			asked = append(asked, s)
		}
	}
	have := m.gate.Decide(m.now, q, asked...)
	m.compare(t, q, asked, have)
}

func (m *model) compare(t *rapid.T, q *Request, asked []*Subject, have Decision) {
	verdict, counted, wait := Allow, q.Cost, time.Duration(0)
	answers := map[*refRule]refAnswer{}
	for _, r := range m.rules {
		if !slices.ContainsFunc(asked, func(s *Subject) bool { return s.Scope == r.scope }) || !slices.Contains(r.rule.Action, q.Action.String()) {
			continue
		}
		a := r.ask(m.now, q)
		answers[r] = a
		switch a.outcome {
		case outcomeReject:
			verdict, wait = Reject, max(wait, a.wait)
		case outcomeDegrade:
			verdict = max(verdict, Degrade)
			counted = min(counted, a.counted)
		}
	}
	if verdict == Reject {
		counted = 0
	}
	if have.Verdict != verdict || have.RetryAfter != wait || have.Counted != counted {
		t.Fatalf("%+v: have %+v, want %v counted %d wait %v", q, have, verdict, counted, wait)
	}
	m.compareDecider(t, q, have, answers)
	if verdict == Reject {
		return
	}
	for r, a := range answers {
		if r.rule.Fold && a.outcome != outcomeExempt {
			a.tokens = tokens(min(counted, a.counted), max(r.rule.Multiply[q.Role], 1))
		}
		if a.from != nil {
			a.from.spend(a.tokens)
		}
	}
}

// compareDecider checks that the rule named is one that decided so, and that
// it has the least left.
func (m *model) compareDecider(t *rapid.T, q *Request, have Decision, answers map[*refRule]refAnswer) {
	least := int64(-1)
	for r, a := range answers {
		if a.from == nil || a.outcome == outcomeReject {
			continue
		}
		if least < 0 || a.left < least {
			least = a.left
		}
		if r.rule.Name == have.Rule && have.Verdict != Reject && a.left != have.Remaining {
			t.Fatalf("%+v: rule %s: remaining %d, want %d", q, have.Rule, have.Remaining, a.left)
		}
	}
	for r, a := range answers {
		if r.rule.Name != have.Rule {
			continue
		}
		switch {
		case r.scope != have.Scope,
			have.Verdict == Reject && (a.outcome != outcomeReject || a.wait != have.RetryAfter),
			have.Verdict == Degrade && a.outcome != outcomeDegrade,
			have.Verdict == Allow && a.left != least:
			t.Fatalf("%+v: %+v does not name the rule that decided, which said %+v", q, have, a)
		}
	}
}

// checkLevels compares every bucket with the reference.
func (m *model) checkLevels(t *rapid.T) {
	for _, r := range m.rules {
		for _, s := range m.subjects {
			if s.Scope != r.scope || s.gen == nil {
				continue
			}
			s.bindLocked(m.gate.current.Load(), m.now)
			c := s.gen.rules.byName[r.rule.Name]
			at := s.atLocked(m.now)
			level := big.NewRat(c.meter.level(s.cells[c.cell:], at), c.meter.shares(nil).whole)
			if want := r.main.at(m.now); level.Cmp(want) != 0 {
				t.Fatalf("rule %s: level %s, want %s", r.rule.Name, level, want)
			}
		}
	}
}

func TestGateAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"step":   func(t *rapid.T) { m.now = m.now.Add(drawStep(t)) },
			"decide": m.decide,
			"burst": func(t *rapid.T) {
				for range rapid.IntRange(1, 10).Draw(t, "times") {
					m.decide(t)
				}
			},
			"reload": func(t *rapid.T) {
				m.version++
				spec := drawSpec(t, m.version)
				if !m.gate.Swap(compileOrFatal(t, spec)) {
					t.Fatal("a newer set was ignored")
				}
				m.load(spec, m.rules)
			},
			"": m.checkLevels,
		})
	})
}
