package limit

import (
	"time"

	"liveroom/internal/lock"
)

// AbusePolicy says what repeated abuse is and what follows. Zero fields take
// their defaults.
type AbusePolicy struct {
	// Rejects within Within make a strike. 20 in 5 s by default.
	Rejects int
	Within  time.Duration
	// Mute is how long the first strike silences; 30 s by default.
	Mute time.Duration
	// Forget is how long after a strike the next one closes; 5 min by default.
	Forget time.Duration
}

func (p AbusePolicy) withDefaults() AbusePolicy {
	if p.Rejects <= 0 {
		p.Rejects = 20
	}
	if p.Within <= 0 {
		p.Within = 5 * time.Second
	}
	if p.Mute <= 0 {
		p.Mute = 30 * time.Second
	}
	if p.Forget <= 0 {
		p.Forget = 5 * time.Minute
	}
	return p
}

// Penalty is what a rejection brings its sender.
type Penalty uint8

const (
	// NoPenalty: answer the rejection as it is.
	NoPenalty Penalty = iota
	// Mute: from now on Muted, for the policy's time.
	Mute
	// Close: cut the connection, with close code 4005.
	Close
)

// Abuse watches one sender's rejections: a strike mutes it, another one, also
// by going on while muted, closes it. Embed it as a field; the zero value is
// ready. Its memory is one instant per reject of the policy, kept only once
// there was a rejection. It is safe for concurrent use.
type Abuse struct {
	mu     lock.Mutex[lock.Leaf]
	recent []Instant // ring of the last rejections
	next   int
	struck bool
	strike Instant // the last one
	mute   time.Duration
}

// Rejected notes a rejection at now, a refusal of something muted included,
// and says what follows.
func (a *Abuse) Rejected(now Instant, policy AbusePolicy) Penalty {
	p := policy.withDefaults()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.recent) < p.Rejects {
		a.recent = append(a.recent, now)
	} else {
		a.recent[a.next] = now
		a.next = (a.next + 1) % len(a.recent)
	}
	if len(a.recent) < p.Rejects || now.Sub(a.recent[a.next]) > p.Within {
		return NoPenalty
	}
	again := a.struck && now.Sub(a.strike) <= p.Forget
	a.recent, a.next = a.recent[:0], 0
	a.struck, a.strike, a.mute = true, now, p.Mute
	if again {
		return Close
	}
	return Mute
}

// Muted returns how long the sender is still muted at now, 0 when it is not.
func (a *Abuse) Muted(now Instant) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.struck {
		return 0
	}
	return max(a.mute-max(now.Sub(a.strike), 0), 0)
}
