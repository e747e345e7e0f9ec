package model

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"liveroom/limit"
)

// Result is what a run came to. Numbers of tokens and calls are sums over all
// subjects and nodes, unless they say otherwise.
type Result struct {
	Scenario Scenario

	Asked, Admitted, Ideal int64
	// Worst is the worst window of the worst subject: the bound is kept when its
	// tokens are at most Burst. Lost is what a fail-over lost of that subject's
	// grants.
	Worst   Window
	Subject int
	Lost    int64
	// Utilisation is admitted of Ideal after Warm, over all subjects; Ideal is
	// what one exact bucket admits of the same messages.
	Utilisation float64
	// Calls and NodeCalls are calls to the store a second and subject, over all
	// nodes, of the busiest subject, and the mean of a node that has it.
	Calls, NodeCalls float64
	Pipelines        float64 // a second, to all servers
	Beats            float64
	// PerMessage is calls for each message that came.
	PerMessage float64
	// Share is the least that a node's part of the admitted was of its part of
	// the demand, of nodes with a twentieth of the demand or more.
	Share float64
	// Waits of messages for their answer.
	P50, P99, Longest time.Duration
	Expired           int64
	// Outages are when nodes took the store for away; Debts is what they spent
	// meanwhile and told it of, in shares.
	Outages []time.Duration
	Debts   int64
	Stale   int64
	// Trace tells runs apart: it is a hash of all admissions.
	Trace uint64

	admitted map[int][]Admission
	asked    map[int][]Admission
}

func (w *World) result(from time.Duration) *Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.scenario
	r := &Result{Scenario: *s, Share: math.Inf(1), admitted: map[int][]Admission{}, asked: map[int][]Admission{}}
	warm := from + s.Warm
	var after, idealAfter int64
	var everything account
	for subject, a := range w.book {
		ideal := s.Bound.ideal(a.asked)
		r.Asked += sum(a.asked, 0)
		r.Admitted += sum(a.admitted, 0)
		r.Ideal += sum(ideal, 0)
		after += sum(a.admitted, warm)
		idealAfter += sum(ideal, warm)
		if worst := s.Bound.Worst(a.admitted); worst.Tokens-w.lost(subject) > r.Worst.Tokens-r.Lost {
			r.Worst, r.Lost, r.Subject = worst, w.lost(subject), subject
		}
		everything.asked = append(everything.asked, a.asked...)
		everything.admitted = append(everything.admitted, a.admitted...)
		r.admitted[subject], r.asked[subject] = a.admitted, a.asked
	}
	r.Share = everything.leastShare()
	r.Utilisation = float64(after) / float64(max(idealAfter, 1))
	w.count(r)
	w.times(r)
	r.Outages = w.outages
	for _, server := range w.servers {
		for _, debt := range server.debts {
			r.Debts += debt
		}
	}
	r.Trace = trace(r.admitted)
	return r
}

// count fills in what the store was asked.
func (w *World) count(r *Result) {
	s := w.scenario
	seconds := s.Length.Seconds()
	total := int64(0)
	busiest := map[string]int64{}
	for _, server := range w.servers {
		for op, n := range server.counts.ByOp {
			total += n
			if s.Way != Leases {
				busiest[op] += n
			}
		}
		for key, n := range server.perKey {
			busiest[key] += n
		}
		r.Pipelines += float64(server.counts.Pipelines) / seconds
		r.Beats += float64(server.counts.Beats) / seconds
		r.Stale += server.counts.Stale
	}
	for _, n := range busiest {
		r.Calls = max(r.Calls, float64(n)/seconds)
	}
	if s.Way != Leases {
		r.Calls /= float64(s.Subjects)
	}
	r.PerMessage = float64(total) / float64(max(r.Asked, 1))
	speakers := 0
	for number := range s.NodesEver {
		if s.Speaks == nil || s.Speaks(number, 0) {
			speakers++
		}
	}
	r.NodeCalls = r.Calls / float64(max(speakers, 1))
	for _, n := range w.nodes {
		if q, ok := n.quota.(*leased); ok {
			r.Expired += q.cluster.Stats().Expired
		}
	}
}

func (w *World) times(r *Result) {
	if len(w.waits) == 0 {
		return
	}
	slices.Sort(w.waits)
	r.P50, r.P99 = w.waits[len(w.waits)/2], w.waits[len(w.waits)*99/100]
	r.Longest = w.waits[len(w.waits)-1]
}

// lost is the tokens of a subject whose grants fail-overs lost.
func (w *World) lost(subject int) int64 {
	shares := int64(0)
	for _, server := range w.servers {
		for key, n := range server.lost {
			if keyOf(w.scenario.Scope, subject) == tag(key) {
				shares += n
			}
		}
	}
	return shares
}

func keyOf(scope limit.Scope, subject int) string {
	if scope == limit.ScopeUser {
		return fmt.Sprintf("user:u%d", subject)
	}
	return fmt.Sprintf("room:r%d", subject)
}

// ideal is what one exact bucket that sees every message at once admits.
func (b Bound) ideal(asked []Admission) []Admission {
	slices.SortStableFunc(asked, func(x, y Admission) int { return cmp.Compare(x.At, y.At) })
	full := b.Burst * int64(b.Per)
	level, last := full, time.Duration(0)
	var admitted []Admission
	for _, a := range asked {
		level += b.inflow(a.At-last, full-level)
		last = a.At
		if need := a.Cost * int64(b.Per); need <= level {
			level -= need
			admitted = append(admitted, a)
		}
	}
	return admitted
}

// leastShare compares what nodes got with what they asked for.
func (a *account) leastShare() float64 {
	asked, got := map[int]int64{}, map[int]int64{}
	for _, m := range a.asked {
		asked[m.Node] += m.Cost
	}
	for _, m := range a.admitted {
		got[m.Node] += m.Cost
	}
	total, all := sum(a.asked, 0), sum(a.admitted, 0)
	least := math.Inf(1)
	for node, n := range asked {
		if n*20 >= total && all > 0 {
			least = min(least, float64(got[node])/float64(all)*float64(total)/float64(n))
		}
	}
	return least
}

func sum(list []Admission, from time.Duration) int64 {
	n := int64(0)
	for _, a := range list {
		if a.At >= from {
			n += a.Cost
		}
	}
	return n
}

func trace(book map[int][]Admission) uint64 {
	h := fnv.New64a()
	for subject := range len(book) {
		for _, a := range book[subject] {
			fmt.Fprintln(h, subject, a.At, a.Node)
		}
	}
	return h.Sum64()
}

// extra is what the documentation grants beyond the bound, and what a fail-over lost.
func (r *Result) extra() int64 {
	extra := r.Scenario.Want.Extra
	if len(r.Outages) > 0 || r.Debts > 0 {
		extra += r.Scenario.Bound.Burst // each node's part may be full at first
	}
	return extra
}

// Faults lists what the scenario wanted and did not get.
func (r *Result) Faults() []string {
	var faults []string
	want, b := r.Scenario.Want, r.Scenario.Bound
	say := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	extra := r.extra()
	if over := r.Worst.Tokens - b.Burst - r.Lost - extra; over > 0 && !want.Exceeds && !want.Unbound {
		say("bound broken by %d: subject %d, %v to %v, takes %d tokens more than flow in, the burst is %d, a fail-over lost %d, documented %d",
			over, r.Subject, r.Worst.From, r.Worst.To, r.Worst.Tokens, b.Burst, r.Lost, extra)
	}
	if want.Exceeds && r.Worst.Tokens <= b.Burst {
		say("the bound was kept: %d of %d", r.Worst.Tokens, b.Burst)
	}
	if r.Utilisation < want.Utilisation {
		say("utilisation %.4f, want %.4f", r.Utilisation, want.Utilisation)
	}
	if want.Calls > 0 && r.Calls > want.Calls {
		say("%.1f calls a second, want at most %.1f", r.Calls, want.Calls)
	}
	if want.NodeCalls > 0 && r.NodeCalls > want.NodeCalls {
		say("%.1f calls a second and node, want at most %.1f", r.NodeCalls, want.NodeCalls)
	}
	if r.Share < want.Share {
		say("a node got %.3f of its share, want %.3f", r.Share, want.Share)
	}
	return faults
}
