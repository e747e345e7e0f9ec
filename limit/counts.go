package limit

import (
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"
)

// outcome is what one rule made of one request.
type outcome uint8

const (
	outcomeAllow outcome = iota
	outcomeDegrade
	outcomeReject
	outcomeExempt
	outcomeShadowDegrade
	outcomeShadowReject

	outcomeCount
)

var outcomeNames = [outcomeCount]string{"allow", "degrade", "reject", "exempt", "shadow_degrade", "shadow_reject"}

// shadow is the outcome under which a rule in shadow counts.
func (o outcome) shadow() outcome {
	switch o {
	case outcomeDegrade:
		return outcomeShadowDegrade
	case outcomeReject:
		return outcomeShadowReject
	}
	return o
}

// Count is how often a rule made an outcome of an action, since the Gate
// began. Counts never fall, also over a Swap.
type Count struct {
	Rule    string
	Scope   string
	Action  string // a name of Action, or "api:" and a route's template
	Outcome string // allow, degrade, reject, exempt, shadow_degrade, shadow_reject
	N       int64
}

// Counts returns the counters of every rule that was ever in force, each
// outcome of each of its actions, from zero on. allow and degrade count
// requests that went ahead; reject counts at every rule that refused.
func (g *Gate) Counts() []Count {
	g.mu.Lock()
	defer g.mu.Unlock()
	sums := make(map[*counter]int64, len(g.counters))
	for _, t := range g.tallies {
		t.addAllowed(sums)
	}
	counts := make([]Count, 0, len(g.counters)*int(outcomeCount))
	for key, c := range g.counters {
		for o := range outcomeCount {
			n := c.n[o].Load()
			if o == outcomeAllow {
				n += sums[c]
			}
			counts = append(counts, Count{key.rule, key.scope.String(), key.action, outcomeNames[o], n})
		}
	}
	slices.SortFunc(counts, func(a, b Count) int {
		return strings.Compare(a.Rule+"\x00"+a.Action+"\x00"+a.Outcome, b.Rule+"\x00"+b.Action+"\x00"+b.Outcome)
	})
	return counts
}

type counterKey struct {
	rule   string
	scope  Scope
	action string
}

// counter counts one rule and action.
type counter struct{ n [outcomeCount]atomic.Int64 }

func (c *counter) add(o outcome) { c.n[o].Add(1) }

// tally counts the decisions for one action. The usual one, allowed in full by
// every rule of every scope asked, is one addition, whatever the number of
// rules; it is spread over shards by the first subject, so that cores seldom
// meet. Everything else is counted rule by rule.
type tally struct {
	counters [scopeCount][]*counter                      // beside lists.of
	shards   *[tallyShards][1 << scopeCount]atomic.Int64 // by scopes asked
}

const tallyShards = 8

func (t *tally) allowed(first *Subject, scopes uint16) {
	shard := uintptr(unsafe.Pointer(first)) >> 7 % tallyShards
	t.shards[shard][scopes].Add(1)
}

func (t *tally) addAllowed(sums map[*counter]int64) {
	for scopes := range t.shards[0] {
		n := int64(0)
		for shard := range t.shards {
			n += t.shards[shard][scopes].Load()
		}
		if n == 0 {
			continue
		}
		for scope, counters := range t.counters {
			if scopes>>scope&1 == 0 {
				continue
			}
			for _, c := range counters {
				sums[c] += n
			}
		}
	}
}

// talliesFor returns the tallies of a set, by lists.id. Lists that hold the
// same rules by name go on with the tally they had. The caller holds g.mu, or
// has g for itself.
func (g *Gate) talliesFor(rules *Rules) []*tally {
	tallies := make([]*tally, len(rules.every))
	for i, l := range rules.every {
		tallies[i] = g.tallyFor(l)
	}
	return tallies
}

func (g *Gate) tallyFor(l *lists) *tally {
	t := tally{}
	signature := l.name
	for scope := range l.of {
		for _, r := range l.of[scope].rules {
			key := counterKey{r.name, r.scope, l.name}
			c := g.counters[key]
			if c == nil {
				c = &counter{}
				g.counters[key] = c
			}
			t.counters[scope] = append(t.counters[scope], c)
			signature += "\x00" + r.name
		}
		signature += "\x01"
	}
	if known := g.tallies[signature]; known != nil {
		t.shards = known.shards
		return &t
	}
	t.shards = new([tallyShards][1 << scopeCount]atomic.Int64)
	g.tallies[signature] = &t
	return &t
}
