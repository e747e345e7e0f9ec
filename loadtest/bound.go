package main

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// bound is a quota as one states it: any window of w seconds admits at most burst + rate·w.
type bound struct {
	rate  int64 // per second
	burst int64
}

// parseBound reads "100,200": 100 a second and a burst of 200. "" is no bound.
func parseBound(s string) (bound, error) {
	if s == "" {
		return bound{}, nil
	}
	rate, burst, ok := strings.Cut(s, ",")
	r, err := strconv.ParseInt(rate, 10, 32)
	b, err2 := strconv.ParseInt(burst, 10, 32)
	if !ok || err != nil || err2 != nil || r < 0 || b < 1 {
		return bound{}, fmt.Errorf("bound: want RATE,BURST like 100,100, have %q", s)
	}
	return bound{rate: r, burst: b}, nil
}

// stated reports whether there is a bound at all.
func (b bound) stated() bool { return b.burst > 0 }

// milli is the unit in which a bucket's level is counted: thousandths of a message, so that what comes back in a
// millisecond is the rate itself, a whole number.
const milli = 1000

// bucket is the exact bucket that a bound describes. It is drained by what was admitted, in the order of the stamps, and
// never refuses: how far below empty it gets is by how much the bound was broken.
//
// Why that is every window at once: a window that holds n stamps from a to b is within the bound when n ≤ burst +
// rate·w. The level after a stamp is the least, over all windows that end there, of burst + rate·w − n; so it is below
// zero exactly when one of them is not. One pass over the stamps instead of all pairs of them.
//
// Why w is one millisecond longer than b − a: a stamp is an instant cut to whole milliseconds, so the true instants lie
// in [a, a+1) and [b, b+1), and the true window is shorter than b − a + 1, never as long. Hence burst + rate·(b−a+1) may
// not be reached, let alone passed: at a positive rate one thousandth of a message is taken off. What this check calls
// broken is broken whatever was cut off; what hides from it is less than rate/1000 of a message.
type bucket struct {
	bound
	level int64 // milli
	last  int64 // Unix milliseconds
}

// newBucket is full at an instant.
func newBucket(b bound, at int64) *bucket { return &bucket{bound: b, level: b.full(), last: at} }

// full is the most a window may hold beyond rate·(b−a), in milli.
func (b bound) full() int64 { return b.burst*milli + max(b.rate-1, 0) }

// advance brings the level up to an instant, not before the last.
func (k *bucket) advance(at int64) {
	// A gap that fills the bucket anyway is cut, so that no product overflows.
	if gap := at - k.last; k.rate > 0 && gap > (k.full()-k.level)/k.rate {
		k.level = k.full()
	} else {
		k.level += gap * k.rate
	}
	k.last = at
}

// take drains one message at an instant and returns the level after it.
func (k *bucket) take(at int64) int64 {
	k.advance(at)
	k.level -= milli
	return k.level
}

// messages is a level in whole messages, rounded away from the bound's side.
func messages(level int64) int64 {
	if level < 0 {
		return -((-level + milli - 1) / milli)
	}
	return level / milli
}

// within is the most whole messages that a window of two stamps so many milliseconds apart may hold.
func (b bound) within(apart int64) int64 { return (b.full() + b.rate*apart) / milli }

// excess is by how many messages the worst window exceeds the bound; 0 when none does. Stamps are instants of admission
// in ascending Unix milliseconds.
func (b bound) excess(stamps []int64) int64 {
	if len(stamps) == 0 {
		return 0
	}
	k, worst := newBucket(b, stamps[0]), int64(0)
	for _, at := range stamps {
		worst = min(worst, k.take(at))
	}
	return -messages(worst)
}

// Window is a stretch of time, both ends included, and what was admitted in it.
type Window struct {
	From     int64            `json:"from_ms"` // since the first attempt
	To       int64            `json:"to_ms"`
	Admitted int64            `json:"admitted"`
	Allowed  int64            `json:"allowed"`           // burst + rate × (to − from + 1 ms), what a whole message fits into
	ByNode   map[string]int64 `json:"by_node,omitempty"` // who admitted them
}

// worst is the window that comes closest to the bound, or exceeds it most: it ends at the stamp after which the level was
// least, and begins with the first stamp after the bucket was last full. Empty for no stamps.
func (b bound) worst(stamps []int64) (from, to int64) {
	if len(stamps) == 0 {
		return 0, -1
	}
	k, least, began := newBucket(b, stamps[0]), int64(math.MaxInt64), stamps[0]
	for _, at := range stamps {
		if k.advance(at); k.level == b.full() {
			began = at
		}
		if level := k.take(at); level < least {
			least, from, to = level, began, at
		}
	}
	return from, to
}

// The rule sets that come along, for nodes that this tool starts.
var (
	//go:embed rules/bench.yaml
	benchRules []byte
	//go:embed rules/pulse.yaml
	pulseRules []byte
	//go:embed rules/quota.yaml
	quotaTemplate []byte
)

// ruleSet is what this tool reads of a rule file: enough to know the bound it can check.
type ruleSet struct {
	Rules []struct {
		Action any    `yaml:"action"`
		Scope  string `yaml:"scope"`
		Room   string `yaml:"room"`
		Rate   int64  `yaml:"rate"`
		Burst  int64  `yaml:"burst"`
		Tiers  []struct {
			Below int64 `yaml:"below"`
			Rate  int64 `yaml:"rate"`
			Burst int64 `yaml:"burst"`
		} `yaml:"tiers"`
	} `yaml:"rules"`
}

// danmakuBound finds the room's danmaku quota for an audience in a rule file, the zero bound when there is none.
func danmakuBound(file []byte, audience int) (bound, error) {
	var set ruleSet
	if err := yaml.Unmarshal(file, &set); err != nil {
		return bound{}, fmt.Errorf("rules: %w", err)
	}
	for _, r := range set.Rules {
		if r.Scope != "room" || r.Room != "" || !slices.Contains(names(r.Action), danmaku.String()) {
			continue
		}
		for _, t := range r.Tiers {
			if t.Below == 0 || int64(audience) < t.Below {
				return bound{t.Rate, t.Burst}, nil
			}
		}
		return bound{r.Rate, r.Burst}, nil
	}
	return bound{}, nil
}

// names reads a string or a list of them.
func names(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, x := range v {
			out = append(out, fmt.Sprint(x))
		}
		return out
	}
	return nil
}
