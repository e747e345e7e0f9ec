package conn

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"liveroom/conn/frame"
	"liveroom/conn/socket"
	"liveroom/limit"
	"liveroom/protocol"
)

// ServeHTTP upgrades a request and returns; the session goes on in a goroutine of its own. What is wrong with the
// handshake is answered with a status; what is wrong with the moment (too many, draining, an address over its limit) is
// answered with a close code where possible, since a page sees nothing of a status.
func (a *Acceptor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !offersKnown(r.Header) {
		a.cfg.Metrics.upgrades.badRequest.Inc()
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
		a: a, id: a.ids.Next(), addr: addr, arrival: in, turnedAway: refusal != nil,
		timer: timer{slot: -1}, wire: wire{fd: -1, count: a.cfg.Metrics.stripe()},
	}
	s.reader.lang = protocol.ParseLang(r.Header.Get("Accept-Language"))
	s.limits.Scope = limit.ScopeConn
	u := &upgrade{ResponseWriter: w, s: s}
	if a.cfg.Deflate {
		u.extensions = frame.AcceptDeflate(r.Header)
		s.reader.frames.Deflate = u.extensions != ""
	}
	ws, err := websocket.Accept(u, r, &a.accept)
	if err != nil { // coder has answered
		a.cfg.Metrics.upgrades.badRequest.Inc()
		a.release(s.turnedAway, in)
		a.running.Done()
		return
	}
	_ = ws.CloseNow() // lets go of coder's finalizer; the socket is the session's
	a.adopt(s, refusal)
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

// unavailable is the answer when not even a close code can be afforded.
func (a *Acceptor) unavailable(w http.ResponseWriter) {
	a.cfg.Metrics.upgrades.unavailable.Inc()
	wait := a.cfg.Reconnect + rand.N(a.cfg.Reconnect)
	w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	http.Error(w, "too many connections, come back later", http.StatusServiceUnavailable)
}

// upgrade is the ResponseWriter handed to coder: its Hijack keeps the connection for the session and gives coder none.
type upgrade struct {
	http.ResponseWriter
	s          *Session
	extensions string // that were negotiated; "" for none
}

var _ http.Hijacker = (*upgrade)(nil)

// WriteHeader tells the client of the extensions, when it is let in.
func (u *upgrade) WriteHeader(status int) {
	if status == http.StatusSwitchingProtocols && u.extensions != "" {
		u.Header().Set("Sec-WebSocket-Extensions", u.extensions)
	}
	u.ResponseWriter.WriteHeader(status)
}

// Hijack takes the connection from net/http and keeps what it had read ahead.
func (u *upgrade) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take the connection from net/http: %w", err)
	}
	if c, ok := nc.(interface{ Bare() net.Conn }); ok { // a listener's wrapper that has done its work
		nc = c.Bare()
	}
	ahead, _ := rw.Reader.Peek(rw.Reader.Buffered())
	u.s.attach(nc, append([]byte(nil), ahead...))
	none := handshaken{}
	return none, bufio.NewReadWriter(bufio.NewReaderSize(none, 0), bufio.NewWriterSize(none, 1)), nil
}

// attach gives the session its socket.
func (s *Session) attach(nc net.Conn, ahead []byte) {
	s.nc, s.wire.fd = nc, -1
	r := &s.reader
	if len(ahead) > 0 {
		r.ahead = ahead
	}
	bare, carrier := socket.Beneath(nc)
	if fd, raw := socket.Descriptor(bare); fd >= 0 && (bare == nc || carrier != nil) {
		s.order = fd
		if bare == nc {
			s.wire.fd = fd
		} else {
			r.carrier, carrier.From = carrier, (*beneath)(r)
		}
		socket.LimitUnsent(fd, s.a.cfg.UnsentBytes)
		s.a.startPoller()
		r.raw = raw
		if r.ready.Store(input); s.a.poller == nil {
			r.ready.Store(hangup) // there are no events to wait for
		}
	}
}

// handshaken is the connection that coder/websocket has after its handshake: none, for it neither reads nor writes frames.
type handshaken struct{ net.Conn }

func (handshaken) Close() error             { return nil }
func (handshaken) Read([]byte) (int, error) { return 0, net.ErrClosed }

// foreign returns the origin of a page that may not connect: neither of the host that was asked, nor configured; "" when it
// may, or when no page asks.
func (a *Acceptor) foreign(r *http.Request) string {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return ""
	}
	u, err := url.Parse(origin)
	if err != nil {
		return origin
	}
	if strings.EqualFold(withoutPort(u.Host, u.Scheme), withoutPort(r.Host, u.Scheme)) {
		return ""
	}
	for _, pattern := range a.cfg.Origins {
		target := u.Host
		if strings.Contains(pattern, "://") {
			target = u.Scheme + "://" + u.Host
		}
		if ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(target)); ok && err == nil {
			return ""
		}
	}
	return origin
}

// withoutPort cuts off the port that a scheme has anyway, which some proxies write and no browser does.
func withoutPort(host, scheme string) string {
	return strings.TrimSuffix(host, map[string]string{"https": ":443", "http": ":80"}[scheme])
}

// originEvery is how often a refused page is worth a line.
const originEvery = time.Minute

// refuseOrigin answers 403. One line a minute names both hosts: behind a proxy that rewrites Host every page is refused,
// and whoever set it up looks here.
func (a *Acceptor) refuseOrigin(w http.ResponseWriter, r *http.Request, origin string) {
	a.cfg.Metrics.upgrades.origin.Inc()
	now := int64(a.now())
	if last := a.originTold.Load(); (last == 0 || now-last >= int64(originEvery)) && a.originTold.CompareAndSwap(last, now) {
		a.cfg.Logger.Warn("sockets of a page are refused: its origin is not the host that was asked; set public_url to what viewers type, or add the page's to origins",
			"origin", origin, "host", r.Host)
	}
	http.Error(w, "The page at "+origin+" may not open sockets at "+r.Host+": its origin must be the same, or configured (public_url, origins).", http.StatusForbidden)
}
