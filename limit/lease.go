package limit

import (
	"strconv"
	"time"
)

// lease is a subject's part in one bucket that all nodes share: what this node
// was granted and may spend until a deadline, or the whole bucket when it has
// claimed it. Its subject's mu guards it, also after the subject let it go.
type lease struct {
	// fixed
	job     // its place in a lane's queue; one call at a time
	cluster *Cluster
	owner   *Subject
	key     string

	// guarded by owner.mu
	rule  *rule
	floor int64 // tokens
	lane  *lane // of the last call planned
	name  string
	seq   int64
	gone  bool // the subject let it go: what it holds goes back

	// In hand, in shares: good until the deadline, and at instants from since
	// on, the receipt of the latest grant.
	hold     int64
	low      int64 // at which more is asked for
	until    Instant
	since    Instant
	received int64 // sums under this name: of all grants,
	returned int64 // of what was given back,
	indebted int64 // and of debts that the store knows of
	spent    int64 // of them since the last call, for the counters

	demand   demand
	audience int64 // of the last request
	wants    wants
	dry      dry

	// What the last answer said.
	tier     int // -1 before the first
	left     int64
	leftAt   Instant
	others   int
	seen     int64   // the store's time
	asked    Instant // when that call was sent
	got      Instant // when its answer came
	sent     Instant // when the last call was sent, answered or not
	pace     Instant // when it could have been sent, had all been evenly spaced, and the spacing
	keep     Instant // until when the store remembers the key, at least
	failures int     // calls in a row

	claim  claim
	outage outage

	flying  bool    // a call, or what follows from it, is under way
	planned Instant // when the next call is due, 0 for none
	reset   bool    // the next call is an OpReset
	done    chan struct{}
	call    draft
}

// draft is what a call under way has told.
type draft struct {
	op   Op
	debt int64
	life int64 // of the shard when it was sent
}

// wants is what decisions wait for.
type wants struct {
	sum   int64 // shares that all of them need, together
	least int64 // that the most modest needs
}

// dry is the memory of an answer that there is nothing more.
type dry struct {
	until   Instant // told to those who are refused
	recheck Instant // not before then is the store asked again
	least   int64   // shares that could not be had; fewer may be there
	unknown bool    // nobody could say: who has claimed the bucket does not answer
}

// silence is how long a name may be unheard before the store may have
// forgotten it; a new one begins its counts anew. A store keeps names ten
// seconds at least.
const silence = 8 * time.Second

func newLease(c *Cluster, s *Subject, key string, r *rule, floor int64) *lease {
	p := &lease{cluster: c, owner: s, key: key, rule: r, floor: floor, tier: -1, lane: c.lane(key)}
	p.job.errand = p
	p.renameLocked()
	return p
}

// renameLocked begins a new name, of which the store has heard nothing; what
// was in hand stays behind and expires there.
func (p *lease) renameLocked() {
	p.expireLocked()
	p.cluster.names.Add(1)
	p.name = p.cluster.boot + strconv.FormatInt(p.cluster.names.Load(), 36)
	p.seq, p.received, p.returned, p.indebted = 0, 0, 0, 0
}

// expireLocked drops what is in hand.
func (p *lease) expireLocked() {
	if p.hold > 0 {
		p.cluster.count.expired.Add(p.micro(p.hold))
		p.hold = 0
	}
}

// micro is an amount of shares in millionths of a token.
func (p *lease) micro(shares int64) int64 { return scale(shares, 1e6, p.rule.shared.scale, 0) }

// terms are the numbers in force as far as this node knows.
func (p *lease) terms() *Terms {
	t := p.rule.shared.terms
	return &t[min(max(p.tier, 0), len(t)-1)]
}

// inHandLocked returns the shares that may be spent at an instant.
func (p *lease) inHandLocked(now Instant) int64 {
	if now >= p.until {
		p.expireLocked()
	}
	return p.hold
}

// levelLocked estimates what the bucket holds beside what is in hand: what was
// left at the last answer and has come since, if nobody else took any.
func (p *lease) levelLocked(now Instant) int64 {
	t := p.terms()
	if p.got == 0 {
		return t.Start
	}
	level := p.left
	if since := now.Sub(p.leftAt); since > 0 && t.Num > 0 {
		level += scale(int64(since/time.Microsecond), t.Num, t.Den, 0)
	}
	return min(level, t.Size)
}

// planLocked has the lease's next call go out at an instant, or before.
func (p *lease) planLocked(at Instant) {
	if at = max(at, 1); p.flying || p.planned != 0 && p.planned <= at {
		return // settle plans what comes after a call
	}
	p.planned = at
	p.lane = p.cluster.lane(p.key)
	p.lane.schedule(&p.job, at)
}

// waitLocked notes a decision that waits for shares and returns what is closed
// when the next answer is there.
func (p *lease) waitLocked(need, least int64) <-chan struct{} {
	p.wants.sum = min(p.wants.sum+need, maxShares)
	if p.wants.least == 0 || least < p.wants.least {
		p.wants.least = least
	}
	if p.done == nil {
		p.done = make(chan struct{})
	}
	p.planLocked(max(p.soonLocked(), p.got.Add(p.cluster.gather())))
	return p.done
}

// nextLocked is when the next call may go out that nobody waits for: some time
// after the last.
func (p *lease) nextLocked() Instant {
	if p.sent == 0 {
		return 0
	}
	return p.sent.Add(p.cluster.cfg.Spacing)
}

// soonLocked is when the next call may go out that a decision waits for: at
// once, unless the last few came in a row. Over time they are as far apart as
// the others.
func (p *lease) soonLocked() Instant {
	if p.pace == 0 {
		return 0
	}
	return p.pace.Add(-inARow * p.cluster.cfg.Spacing)
}

// paceLocked counts a call that goes out.
func (p *lease) paceLocked(now Instant) {
	p.sent, p.pace = now, max(p.pace, now).Add(p.cluster.cfg.Spacing)
}

// inARow is how many calls may go out without a pause.
const inARow = 4

// wakeLocked lets those who wait look again.
func (p *lease) wakeLocked() {
	p.wants = wants{}
	if p.done != nil {
		close(p.done)
		p.done = nil
	}
}
