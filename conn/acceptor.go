package conn

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"liveroom/conn/socket"
	"liveroom/internal/lock"
	"liveroom/protocol"
)

// Acceptor upgrades requests to sessions and owns them until they end. It is the handler of GET /ws.
type Acceptor struct {
	// fixed after construction
	cfg     Config
	lobby   Lobby
	start   time.Time
	wheel   *wheel
	ids     *protocol.MIDs
	accept  websocket.AcceptOptions
	readers *readers
	ctx     context.Context // the acceptor's own lifetime, for the lobby's calls
	cancel  context.CancelFunc

	once   sync.Once                // starts the poller with the first socket that can rest
	poller *socket.Poller[*Session] // nil where there is none, see Session.await; set by once

	sessions   atomic.Int64
	refused    atomic.Int64 // sockets that were upgraded to be told why not
	kept       atomic.Int64 // bytes of half messages of sessions that rest, see maxKept
	draining   atomic.Bool
	originTold atomic.Int64 // when the last line about a refused page was written, by now; 0: never

	running sync.WaitGroup // sessions and their writers
	sweeper sync.WaitGroup // the sweeper and the poller

	mu lock.Mutex[lock.Leaf]
	// guarded by mu
	stopped bool // no goroutine may start any more
}

var _ http.Handler = (*Acceptor)(nil)

// NewAcceptor starts an acceptor; [Acceptor.Shutdown] ends it. The error lists every fault of the configuration.
func NewAcceptor(cfg Config, lobby Lobby) (*Acceptor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("conn: %w", err)
	}
	a := &Acceptor{cfg: cfg.withDefaults(), lobby: lobby, start: time.Now(), ids: protocol.NewMIDs()}
	a.accept = websocket.AcceptOptions{Subprotocols: []string{Subprotocol}, InsecureSkipVerify: true} // origins: see foreign
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.readers = newReaders(a.cfg.MaxReaders, a.cfg.MaxWaiting, a.ctx.Done())
	a.wheel = newWheel(a.cfg.sweepStep())
	a.sweeper.Go(a.sweep)
	return a, nil
}

// startPoller sees to it that the input of sessions that rest is waited for. It is called for a session that is counted among
// the running ones.
func (a *Acceptor) startPoller() {
	a.once.Do(func() {
		p, err := socket.NewPoller[*Session]()
		if err != nil {
			a.cfg.Logger.Info("sessions that rest keep a small goroutine each", "err", err)
			return
		}
		a.poller = p
		a.sweeper.Go(func() {
			p.Run(func(s *Session, hangup bool) {
				a.readers.await()
				s.arrived(hangup)
			})
		})
	})
}

// now is the acceptor's clock: monotonic, from 1 ns on.
func (a *Acceptor) now() time.Duration { return time.Since(a.start) + 1 }

// admit returns what a socket holds, or why it is to be turned away now.
func (a *Acceptor) admit(addr netip.Addr) (in Arrival, refusal *protocol.Refusal) {
	if a.draining.Load() {
		return nil, a.sendAway(protocol.CloseGoingAway, 0)
	}
	if a.cfg.Ready != nil {
		if retry, ok := a.cfg.Ready(); !ok {
			return nil, a.sendAway(protocol.CloseOverloaded, retry)
		}
	}
	if a.cfg.Admit != nil {
		var err *protocol.Error
		if in, err = a.cfg.Admit(addr); err != nil {
			r := a.sendAway(protocol.CloseOverloaded, err.RetryAfter)
			r.Detail = string(err.Reason)
			return nil, r
		}
	}
	if a.sessions.Add(1) > int64(a.cfg.MaxSessions) {
		a.release(false, in)
		return nil, a.sendAway(protocol.CloseOverloaded, 0)
	}
	return in, nil
}

// Sockets is how many connections are sessions now, those included that are turned away.
func (a *Acceptor) Sockets() int { return int(a.sessions.Load() + a.refused.Load()) }

// reserve counts a session in that is about to start, and a place for a socket that is turned away. False
// when there is no such place, or the acceptor has stopped.
func (a *Acceptor) reserve(turnedAway bool, in Arrival) bool {
	if turnedAway && a.refused.Add(1) > int64(a.cfg.MaxRefused) {
		a.refused.Add(-1)
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		a.release(turnedAway, in)
		return false
	}
	a.running.Add(1)
	return true
}

// adopt starts a session.
func (a *Acceptor) adopt(s *Session, refusal *protocol.Refusal) {
	if s.turnedAway {
		a.cfg.Metrics.upgrades.turnedAway.Inc()
	} else {
		a.cfg.Metrics.upgrades.accepted.Inc()
		a.cfg.Metrics.sessions.Add(1)
		if s.Deflates() {
			a.cfg.Metrics.deflating.Add(1)
		}
	}
	s.pulse.born = a.now()
	s.stamp()
	a.wheel.add(s, s.pulse.born+min(a.cfg.HelloTimeout, a.cfg.Heartbeat))
	switch {
	case refusal != nil:
		s.Close(*refusal)
	case a.draining.Load(): // Shutdown may have listed the sessions before this one
		s.Close(*a.sendAway(protocol.CloseGoingAway, 0))
	}
	a.readers.read(s)
}

// ended forgets a session whose socket is closed.
func (a *Acceptor) ended(s *Session) {
	a.wheel.remove(s)
	if s.reader.watched {
		a.poller.Forget(s.order, s)
	}
	s.mu.Lock()
	code := s.end.code
	s.mu.Unlock()
	a.cfg.Metrics.closed(code)
	if !s.turnedAway {
		a.cfg.Metrics.sessions.Add(-1)
		if s.Deflates() {
			a.cfg.Metrics.deflating.Add(-1)
		}
	}
	a.release(s.turnedAway, s.arrival)
	a.running.Done()
}

// release gives a place back, and what its socket held.
func (a *Acceptor) release(turnedAway bool, in Arrival) {
	if turnedAway {
		a.refused.Add(-1)
		return
	}
	a.sessions.Add(-1)
	if in != nil {
		in.Leave()
	}
}

// sendAway words a refusal with a time to come back: not before retry, and a different one for each client.
func (a *Acceptor) sendAway(code protocol.CloseCode, retry time.Duration) *protocol.Refusal {
	return &protocol.Refusal{Code: code, Reconnect: retry + a.cfg.Reconnect + rand.N(a.cfg.Reconnect)}
}
