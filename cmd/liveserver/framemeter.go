package main

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/conn"
	"liveroom/internal/admit"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room"
)

// frameMeter spends each frame on its connection's bucket before the frame is parsed. It also times one decision in
// timedShare, since every viewer's every frame comes by here and two looks at the clock cost as much as a decision.
type frameMeter struct {
	gate  *limit.Gate
	turn  atomic.Uint32
	times prometheus.Histogram
}

const timedShare = 64

func newFrameMeter(gate *limit.Gate, reg prometheus.Registerer) *frameMeter {
	m := &frameMeter{gate: gate, times: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "liveroom_limit_seconds", Help: "Time of a decision about a frame, one in 64 of them.",
		Buckets: []float64{1e-7, 2.5e-7, 5e-7, 1e-6, 2.5e-6, 5e-6, 1e-5, 1e-4, 1e-3, 1e-2, 3e-2},
	})}
	reg.MustRegister(m.times)
	return m
}

var _ conn.Meter = (*frameMeter)(nil)

// abuseReconnect is how long a client that was cut off for abuse is told to stay away, before jitter.
const abuseReconnect = 30 * time.Second

// Frame implements [conn.Meter]. Twenty refusals in five seconds mute the connection for a while, and the same again
// ends it.
func (m *frameMeter) Frame(s *conn.Session) (*protocol.Error, *protocol.Refusal) {
	now := m.gate.Now()
	left := s.Abuse().Muted(now)
	var err *protocol.Error
	if left == 0 {
		if err = m.spend(now, s); err == nil {
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

// spend asks the connection's bucket for one frame.
func (m *frameMeter) spend(now limit.Instant, s *conn.Session) *protocol.Error {
	q := limit.Request{Action: limit.Frame, Addr: s.Addr()}
	if m, ok := s.Seat().(*room.Member); ok { // nobody knows who it is before the hello
		who := m.Who()
		q.User, q.Role = who.User, string(who.Role)
	}
	d := m.gate.Decide(now, &q, s.Subject())
	if m.turn.Add(1)%timedShare == 0 {
		m.times.Observe(m.gate.Now().Sub(now).Seconds())
	}
	if d.Verdict != limit.Reject {
		return nil
	}
	err := admit.Error(protocol.ReasonRateLimited, d)
	return err
}
