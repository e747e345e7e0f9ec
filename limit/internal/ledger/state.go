package ledger

import (
	"slices"
	"strings"
	"time"

	"liveroom/limit"
	"liveroom/limit/cluster"
)

// The store's own constants, in microseconds. The script has the same.
const (
	tolerance = int64(cluster.Tolerance / time.Microsecond)
	// purge is how long after its lease the store remembers a node's sums.
	purge = int64(10 * time.Second / time.Microsecond)
	// lately is how long a node that asked counts among Others.
	lately = int64(10 * time.Second / time.Microsecond)
	// tierHold is how long the audience must ask for another tier.
	tierHold = int64(10 * time.Second / time.Microsecond)
	// claimed is how long a claim lasts that its owner does not confirm.
	claimed = int64(time.Hour / time.Microsecond)
	// slack is added to every key's life.
	slack = int64(time.Second / time.Microsecond)
	// longest bounds the life of a key that never fills again.
	longest = int64(400 * 24 * time.Hour / time.Microsecond)
	// tombstone is how long the store remembers a slot that was freed before it
	// was taken.
	tombstone = int64(10 * time.Second / time.Microsecond)
	// places bounds a log's and a slot table's records.
	places = 1000
	// never is a wait without end.
	never = int64(-1)
	// phantom is the name of whoever may still hold what a lost store granted.
	phantom = ""
)

// state is what the store has of one key. Times are microseconds of the key's
// clock, amounts are shares unless said otherwise.
type state struct {
	t      int64 // last step
	offset int64 // of the key's clock to the server's

	kind           limit.Kind
	size, num, den int64 // the terms in force; den is 1 but for buckets
	length         int64 // of the window; for sliding kinds with the lease

	level       int64 // bucket: in shares*den; fixed window: shares left in it
	tier, asked int64 // the tier in force; since when another is asked for, 0 for not
	owner       string

	window     int64 // number of the window, of the fixed and the sliding kind
	used, past int64 // sliding: granted in this window and in the one before

	nodes   []entry
	records []record // log: each grant; slots: each slot
}

// entry is what the store knows of one node.
type entry struct {
	node     string
	seq      int64
	received int64 // sum of all grants
	returned int64 // sum of all that came back
	debt     int64 // sum of all debts told
	hold     int64 // what it may still spend, until expires
	expires  int64
	at       int64 // when it last called
	grant    int64 // what the last call was granted
	fresh    int64 // what of the last grant above 0 may still come back, of that
	granted  int64 // instant
}

// record is a grant of a log, whose instant is at; or a slot until at, named by
// node and seq, a tombstone when it has no shares.
type record struct {
	at, shares int64
	node       string
	seq        int64
}

func (s *state) clone() *state {
	if s == nil {
		return nil
	}
	c := *s
	c.nodes, c.records = slices.Clone(s.nodes), slices.Clone(s.records)
	return &c
}

func (s *state) find(node string) int {
	return slices.IndexFunc(s.nodes, func(e entry) bool { return e.node == node })
}

// outstanding is what all nodes may still spend after t.
func (s *state) outstanding(t int64) int64 {
	sum := int64(0)
	for i := range s.nodes {
		if s.nodes[i].expires > t {
			sum += s.nodes[i].hold
		}
	}
	return sum
}

// heldByOthers is until when another node than this one holds anything.
func (s *state) heldByOthers(node string) int64 {
	until := int64(0)
	for i := range s.nodes {
		if e := &s.nodes[i]; e.node != node && e.hold > 0 && e.expires > s.t {
			until = max(until, e.expires)
		}
	}
	return until
}

// others counts the nodes but this one that called lately, once each however
// many leases they have.
func (s *state) others(node string) int {
	own, _, _ := strings.Cut(node, "#")
	seen := map[string]bool{}
	for i := range s.nodes {
		if name, _, _ := strings.Cut(s.nodes[i].node, "#"); name != own && name != phantom && s.nodes[i].at+lately > s.t {
			seen[name] = true
		}
	}
	return len(seen)
}

// forget drops the nodes that have been silent for long.
func (s *state) forget() {
	s.nodes = slices.DeleteFunc(s.nodes, func(e entry) bool { return e.expires+purge <= s.t })
}

// keep is how long from its last step the key must be remembered.
func (s *state) keep() int64 {
	if s.owner != "" {
		return claimed
	}
	life := s.filling()
	for i := range s.nodes {
		life = max(life, s.nodes[i].expires+purge-s.t)
	}
	return min(life, longest) + slack
}

// div is a/b rounded down, up is a/b rounded up; b > 0.
func div(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func up(a, b int64) int64 { return -div(-a, b) }
