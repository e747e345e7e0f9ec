package conn

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"liveroom/limit"
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

	once   sync.Once // starts the poller with the first socket that can rest
	poller *poller   // nil where there is none, see Session.await; set by once

	sessions   atomic.Int64
	refused    atomic.Int64 // sockets that were upgraded to be told why not
	kept       atomic.Int64 // bytes of half messages of sessions that rest, see maxKept
	draining   atomic.Bool
	originTold atomic.Int64 // when the last line about a refused page was written, by now; 0: never

	running sync.WaitGroup // sessions and their writers
	sweeper sync.WaitGroup // the sweeper and the poller

	mu sync.Mutex // a leaf
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

// sweepStep is how exact the sweeper's deadlines are: a small part of the shortest. The wheel still spans the longest of usual
// settings in one turn.
func (c *Config) sweepStep() time.Duration {
	return max(min(c.HelloTimeout, c.Heartbeat, c.PongTimeout, c.MessageTimeout, c.CloseTimeout)/32, time.Millisecond)
}

// startPoller sees to it that the input of sessions that rest is waited for. It is called for a session that is counted among
// the running ones.
func (a *Acceptor) startPoller() {
	a.once.Do(func() {
		p, err := newPoller()
		if err != nil {
			a.cfg.Logger.Info("sessions that rest keep a small goroutine each", "err", err)
			return
		}
		a.poller = p
		a.sweeper.Go(func() { p.run(a.readers.await) })
	})
}

// now is the acceptor's clock: monotonic, from 1 ns on.
func (a *Acceptor) now() time.Duration { return time.Since(a.start) + 1 }

// sweep turns the wheel until the acceptor is stopped.
func (a *Acceptor) sweep() {
	t := time.NewTicker(a.wheel.step)
	defer t.Stop()
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-t.C:
			a.wheel.advance(a.now())
		}
	}
}

// ServeHTTP upgrades a request and returns; the session goes on in a goroutine of its own. What is wrong with the
// handshake is answered with a status; what is wrong with the moment (too many, draining, an address over its limit) is
// answered with a close code where possible, since a page sees nothing of a status.
func (a *Acceptor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !offersKnown(r.Header) {
		a.cfg.Metrics.upgrades.badRequest.Add(1)
		http.Error(w, "none of the offered subprotocols is spoken here: offer "+Subprotocol+" or none", http.StatusBadRequest)
		return
	}
	if origin := a.foreign(r); origin != "" {
		a.refuseOrigin(w, r, origin)
		return
	}
	addr := a.cfg.ClientAddr(r)
	in, refusal := a.admit(addr)
	if !a.reserve(refusal != nil, in) {
		a.unavailable(w)
		return
	}
	s := &Session{
		a: a, id: a.ids.Next(), addr: addr, arrival: in, slot: -1, fd: -1, turnedAway: refusal != nil,
		count: a.cfg.Metrics.stripe(), lang: protocol.ParseLang(r.Header.Get("Accept-Language")),
	}
	s.limits.Scope = limit.ScopeConn
	u := &upgrade{ResponseWriter: w, s: s}
	if a.cfg.Deflate {
		u.extensions = acceptDeflate(r.Header)
		s.deflate = u.extensions != ""
		s.at.deflate = s.deflate
	}
	ws, err := websocket.Accept(u, r, &a.accept)
	if err != nil { // coder has answered
		a.cfg.Metrics.upgrades.badRequest.Add(1)
		a.release(s.turnedAway, in)
		a.running.Done()
		return
	}
	_ = ws.CloseNow() // lets go of coder's finalizer; the socket is the session's
	a.adopt(s, refusal)
}

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
		var retry time.Duration
		var ok bool
		if in, retry, ok = a.cfg.Admit(addr); !ok {
			r := a.sendAway(protocol.CloseOverloaded, retry)
			r.Detail = string(protocol.ReasonRateLimited)
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
		a.cfg.Metrics.upgrades.turnedAway.Add(1)
	} else {
		a.cfg.Metrics.upgrades.accepted.Add(1)
		a.cfg.Metrics.sessions.Add(1)
		a.cfg.Metrics.deflating.Add(s.deflating())
	}
	s.born = a.now()
	s.stamp()
	a.wheel.add(s, s.born+min(a.cfg.HelloTimeout, a.cfg.Heartbeat))
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
	if s.watched && a.poller != nil {
		a.poller.forget(s)
	}
	s.mu.Lock()
	code := s.code
	s.mu.Unlock()
	a.cfg.Metrics.closed(code)
	if !s.turnedAway {
		a.cfg.Metrics.sessions.Add(-1)
		a.cfg.Metrics.deflating.Add(-s.deflating())
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

// unavailable is the answer when not even a close code can be afforded.
func (a *Acceptor) unavailable(w http.ResponseWriter) {
	a.cfg.Metrics.upgrades.unavailable.Add(1)
	wait := a.cfg.Reconnect + rand.N(a.cfg.Reconnect)
	w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	http.Error(w, "too many connections, come back later", http.StatusServiceUnavailable)
}

// offersKnown reports whether the request offers no subprotocol or ours among others. Selecting none of several offers
// would make browsers fail the connection with a bare 1006 (WHATWG WebSockets, "establish a WebSocket connection").
func offersKnown(h http.Header) bool {
	offered := false
	for _, v := range h.Values("Sec-WebSocket-Protocol") {
		for p := range strings.SplitSeq(v, ",") {
			switch p = strings.TrimSpace(p); p {
			case Subprotocol:
				return true
			case "":
			default:
				offered = true
			}
		}
	}
	return !offered
}
