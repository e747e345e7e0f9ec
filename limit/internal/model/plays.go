package model

import (
	"fmt"
	"time"

	"liveroom/limit"
)

// Scenario is what a run plays.
type Scenario struct {
	Name string
	Seed uint64
	Way  Way

	// Scope is room, where nodes draw, or user, where a node has a home's
	// claim. Bound is the rule's rate and burst.
	Scope limit.Scope
	Bound Bound

	// Nodes start at the beginning; numbers below NodesEver may be started by
	// events. Subjects are rooms or users, each with Load messages per second
	// at a node; where Speaks is nil every node has all subjects.
	Nodes, NodesEver, Subjects, Servers int
	Length                              time.Duration
	Load                                func(at time.Duration, node, subject int) float64
	Speaks                              func(node, subject int) bool

	Wire   Wire
	Lag    time.Duration // of the replica; 0: there is none
	Drift  int64         // of the nodes' clocks, in millionths, every third fast or slow
	Events []Event

	// Warm is left out of the utilisation, so that the first burst is.
	Warm time.Duration
	// Want is what must hold.
	Want Want
}

// Event befalls the world at an instant since traffic began.
type Event struct {
	At   time.Duration
	Do   func(*World)
	What string // for people; may be empty
}

// String tells what befalls whom.
func (s *Scenario) String() string {
	text := fmt.Sprintf("%s: %d per %v burst %d, %d nodes, %d %ss, %d servers, drift %d, wire %+v",
		s.Name, s.Bound.Rate, s.Bound.Per, s.Bound.Burst, s.Nodes, s.Subjects, s.Scope, s.Servers, s.Drift, s.Wire)
	for _, e := range s.Events {
		text += fmt.Sprintf("\n  %v %s", e.At, e.What)
	}
	return text
}

// Want is what must hold after a run. Zero fields ask nothing, except that the
// bound is kept always: Extra is what the documentation grants beyond it, in
// tokens, on top of what a fail-over lost.
type Want struct {
	Extra       int64
	Utilisation float64 // at least, of what one exact bucket admits of the same messages
	Calls       float64 // at most, a second and subject over all nodes
	NodeCalls   float64 // at most, a second, subject and node
	Share       float64 // at least: a node's share of the admitted over its share of the demand
	Exceeds     bool    // a way that is known to break the bound: it must
	Unbound     bool    // a way that may break it
}

// Way is how the nodes decide.
type Way uint8

// The ways. Leases is the engine under test.
const (
	Leases Way = iota
	PerMessage
	ReportTenth  // every 100 ms
	ReportSecond // every second
	FixedShare
)

// String returns the name that the tables show.
func (w Way) String() string {
	return [...]string{"leases", "call per message", "report each 100 ms", "report each 1 s", "fixed share"}[w]
}

func (w Way) quota(n *Node) quota {
	switch w {
	case PerMessage:
		return &perMessage{n}
	case ReportTenth:
		return newReportLater(n, 100*time.Millisecond)
	case ReportSecond:
		return newReportLater(n, time.Second)
	case FixedShare:
		return &fixedShare{node: n, own: map[int]*tally{}}
	}
	return newLeased(n, n.world.rules)
}

func (s *Scenario) setDefaults() {
	s.NodesEver = max(s.NodesEver, s.Nodes)
	s.Subjects = max(s.Subjects, 1)
	s.Servers = max(s.Servers, 1)
	if s.Scope == limit.ScopeConn {
		s.Scope = limit.ScopeRoom
	}
	if s.Bound.Per == 0 {
		s.Bound.Per = time.Second
	}
	if s.Wire == (Wire{}) {
		s.Wire = Network
	}
}

// Network is a link within a data centre.
var Network = Wire{Delay: 200 * time.Microsecond, Jitter: 100 * time.Microsecond}

// rules is the set with the one rule that a scenario is about.
func (s *Scenario) rules() *limit.Rules {
	spec := &limit.Spec{Version: 1, Rules: []limit.Rule{{
		Name:    "quota",
		Action:  limit.StringList{"danmaku"},
		Scope:   s.Scope.String(),
		Limit:   limit.Limit{Rate: s.Bound.Rate, Per: limit.Duration(s.Bound.Per), Burst: s.Bound.Burst},
		Cluster: true,
	}}}
	rules, err := spec.Compile()
	if err != nil {
		panic(fmt.Sprintf("model: %s: %v", s.Name, err))
	}
	return rules
}
