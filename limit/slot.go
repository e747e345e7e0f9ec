package limit

import (
	"time"

	"liveroom/internal/lock"
)

// slotCall takes one slot of a concurrency rule from the store for one
// decision, or gives it back.
type slotCall struct {
	job
	lease *lease
	seq   int64 // names the slot
	done  chan struct{}

	mu       lock.Mutex[lock.Slot]
	state    slotState
	wait     time.Duration
	free     bool // the next call is an OpFree
	unwanted bool // nobody waits any more: it goes back
}

type slotState uint8

const (
	slotPending slotState = iota
	slotGranted
	slotRefused
	slotFailed
	slotKept
)

// heldSlot is a slot that a decision took, until Gate.Release.
type heldSlot struct {
	taken Instant // the instant that was passed to Decide
	until Instant // when it comes back by itself
	call  *slotCall
}

var _ errand = (*slotCall)(nil)

// askSlot asks for one slot.
func (p *lease) askSlot(t *trial, s *Subject, at int64, a *answer) {
	*a = answer{outcome: outcomeAllow, by: bySlot, cost: 1, unit: 1}
	for _, m := range t.slots {
		if m.lease == p {
			p.askedSlot(t, m, s, at, a)
			return
		}
	}
	switch {
	case p.outLocked(t.now) && !p.probesLocked(t.now):
		p.askOutLocked(s, t.now, at, t.class, 1, 0, a)
	case t.now < p.dry.recheck:
		a.outcome, a.cost, a.wait = outcomeReject, 0, p.dry.until.Sub(t.now)
	case t.last:
		p.askLateLocked(t, s, at, 1, 0, a)
	default:
		p.seq++
		m := &slotCall{lease: p, seq: p.seq, done: make(chan struct{})}
		m.job.errand = m
		t.misses = append(t.misses, miss{slot: m})
	}
}

// askedSlot answers by what the store said.
func (p *lease) askedSlot(t *trial, m *slotCall, s *Subject, at int64, a *answer) {
	m.mu.Lock()
	state, wait := m.state, m.wait
	m.mu.Unlock()
	switch {
	case state == slotGranted:
		t.at = max(t.at, p.since)
	case state == slotRefused:
		a.outcome, a.cost, a.wait = outcomeReject, 0, max(wait, time.Millisecond)
	case p.outLocked(t.now):
		p.askOutLocked(s, t.now, at, t.class, 1, 0, a)
	default:
		p.askLateLocked(t, s, at, 1, 0, a)
	}
}

func (m *slotCall) begin() {
	m.lease.cluster.lane(m.lease.key).schedule(&m.job, 0)
}

// keepSlot has a decision keep its slot until it is released.
func (h *sharing) keepSlot(t *trial, s *Subject, p *lease) {
	cells := s.cells[p.rule.cell:]
	longest := p.terms().Length
	for _, m := range t.slots {
		if m.lease != p {
			continue
		}
		m.mu.Lock()
		m.state = slotKept
		m.mu.Unlock()
		h.slots = append(h.slots, heldSlot{taken: t.first, until: t.now.Add(longest), call: m})
		p.rule.meter.take(cells, s.atLocked(t.first), 1)
		return
	}
}

// releaseSlots gives back what a decision took at an instant.
func (h *sharing) releaseSlots(taken, now Instant, r *rule) {
	kept := h.slots[:0]
	for _, held := range h.slots {
		switch {
		case held.taken == taken && held.call.lease.rule.name == r.name:
			held.call.giveBack()
			taken = -1 << 63 // one of each rule
		case now < held.until:
			kept = append(kept, held)
		}
	}
	clear(h.slots[len(kept):])
	h.slots = kept
}

// abandon gives a slot back that the decision did not keep.
func (m *slotCall) abandon() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state == slotKept {
		return
	}
	m.unwanted = true
	if m.state == slotGranted {
		m.freeLocked()
	}
}

func (m *slotCall) giveBack() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.freeLocked()
}

func (m *slotCall) freeLocked() {
	m.free = true
	m.lease.cluster.lane(m.lease.key).schedule(&m.job, 0)
}

// prepare implements errand.
func (m *slotCall) prepare(_ *lane, now Instant, c *Call) bool {
	m.lease.owner.lock()
	defer m.lease.owner.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.lease
	*c = Call{Op: OpSlot, Key: p.key, Node: p.name, Seq: m.seq, Tiers: p.rule.shared.terms, Stay: true, Ask: 1, Least: 1, Lease: p.terms().Length}
	if m.free {
		c.Op = OpFree
	} else if m.unwanted {
		m.settledLocked(slotFailed)
		return false
	}
	return true
}

// settle implements errand.
func (m *slotCall) settle(_ *lane, sent, now Instant, c *Call) {
	p := m.lease
	p.owner.lock()
	defer p.owner.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Op == OpFree {
		return // one that failed comes back by itself
	}
	switch {
	case c.Err != nil:
		p.failures++
		m.settledLocked(slotFailed)
	case c.Reply.Granted > 0:
		p.failures, p.since = 0, now
		m.settledLocked(slotGranted)
		if m.unwanted {
			m.freeLocked()
		}
	default:
		p.failures = 0
		m.wait = c.Reply.Wait
		m.settledLocked(slotRefused)
	}
}

func (m *slotCall) settledLocked(s slotState) {
	m.state = s
	close(m.done)
}
