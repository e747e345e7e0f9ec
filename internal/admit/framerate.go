package admit

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/limit"
	"liveroom/protocol"
)

// Frames spends each frame on its connection's bucket before the frame is parsed. It also times one decision in
// timedShare, since every viewer's every frame comes by here and two looks at the clock cost as much as a decision.
type Frames struct {
	gate  *limit.Gate
	turn  atomic.Uint32
	times prometheus.Histogram
}

const timedShare = 64

// NewFrames asks the gate.
func NewFrames(gate *limit.Gate, reg prometheus.Registerer) *Frames {
	m := &Frames{gate: gate, times: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "liveroom_limit_seconds", Help: "Time of a decision about a frame, one in 64 of them.",
		Buckets: []float64{1e-7, 2.5e-7, 5e-7, 1e-6, 2.5e-6, 5e-6, 1e-5, 1e-4, 1e-3, 1e-2, 3e-2},
	})}
	reg.MustRegister(m.times)
	return m
}

// abuseReconnect is how long a client that was cut off for abuse is told to stay away, before jitter.
const abuseReconnect = 30 * time.Second

// Connection is whose frames they are.
type Connection interface {
	Addr() netip.Addr
	Subject() *limit.Subject
	Abuse() *limit.Abuse
}

// Spend returns nil, nil for a frame that may pass, and else why it may not, or that it is the last. user and role are empty
// before somebody has said who it is. Twenty refusals in five seconds mute the connection for a while, and the same again ends it.
func (m *Frames) Spend(s Connection, user string, role protocol.Role) (*protocol.Error, *protocol.Refusal) {
	now := m.gate.Now()
	left := s.Abuse().Muted(now)
	var err *protocol.Error
	if left == 0 {
		if err = m.ask(now, s, user, role); err == nil {
			return nil, nil
		}
	}
	switch s.Abuse().Rejected(now, limit.AbusePolicy{}) {
	case limit.Close:
		return nil, &protocol.Refusal{Code: protocol.CloseAbuse, Reconnect: limit.Jitter(abuseReconnect)}
	case limit.Mute:
		left = s.Abuse().Muted(now)
	}
	if left > 0 {
		err = &protocol.Error{Reason: protocol.ReasonMuted, RetryAfter: limit.Jitter(left)}
	}
	return err, nil
}

// ask asks the connection's bucket for one frame.
func (m *Frames) ask(now limit.Instant, s Connection, user string, role protocol.Role) *protocol.Error {
	q := limit.Request{Action: limit.Frame, Addr: s.Addr(), User: user, Role: string(role)}
	d := m.gate.Decide(now, &q, s.Subject())
	if m.turn.Add(1)%timedShare == 0 {
		m.times.Observe(m.gate.Now().Sub(now).Seconds())
	}
	if d.Verdict != limit.Reject {
		return nil
	}
	return Error(protocol.ReasonRateLimited, d)
}
