package admit

import (
	"errors"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/internal/lock"
)

// Allotment is what a process may do with its descriptors.
type Allotment struct {
	Limit   int // of the process; 0: none
	Viewers int // connections of the main listener at a time
	Admin   int // of the operators' one
}

// unknownDescriptors stands for the number of open ones where it can't be told.
const unknownDescriptors = 64

// Allot divides the process's limit up when everything but connections is open. An eighth of it, 64 to 1,024, is kept for what is opened
// later: files of the store, connections to NATS and Redis, and in a quarter of it operators.
func Allot() Allotment { return allot(descriptorLimit(), openDescriptors()) }

func allot(limit, open int) Allotment {
	if limit == 0 {
		return Allotment{Viewers: math.MaxInt, Admin: math.MaxInt}
	}
	reserve := min(max(limit/8, 64), 1024)
	return Allotment{Limit: limit, Viewers: max(limit-open-reserve, 1), Admin: reserve / 4}
}

// Tell says at start what the limit is, and loudly when it is below what the configuration promises.
func (a Allotment) Tell(log *slog.Logger, maxSessions int) {
	if a.Limit == 0 {
		return
	}
	log.Info("descriptors", "limit", a.Limit, "connections", a.Viewers)
	if a.Viewers < maxSessions {
		log.Warn("the limit of open files is below sessions.max: raise it (ulimit -n, LimitNOFILE)", "limit", a.Limit, "connections", a.Viewers, "sessions.max", maxSessions)
	}
}

// RefusedConnections counts what doorkeepers turn away.
func RefusedConnections(reg *prometheus.Registry) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "liveroom_connections_refused_total", Help: "TCP connections that were closed at once: for want of descriptors, or because their address had too many without a socket.",
	}, []string{"listener", "reason"})
	reg.MustRegister(v)
	for _, listener := range []string{"main", "admin"} {
		for _, reason := range []string{reasonDescriptors, reasonAddress} {
			v.WithLabelValues(listener, reason)
		}
	}
	return v
}

const (
	reasonDescriptors = "descriptors"
	reasonAddress     = "address"
)

// Doorkeeper is a listener that takes no more connections than there are descriptors for. What is too many is closed at once, so
// that the kernel's queue holds those that can be served, and the store never finds the descriptors used up.
type Doorkeeper struct {
	net.Listener

	// fixed
	most    int
	share   int              // of connections that are no sockets, for one address; a time-out ends each of them
	shared  []netip.Prefix   // proxies, which speak for many
	sockets func() int       // connections that were upgraded; nil: none ever is
	refused func(why string) // counts
	log     *slog.Logger

	mu lock.Mutex[lock.Leaf]
	// guarded by mu
	requests  int // connections that are no sockets
	byAddress map[netip.Addr]int
	untold    int // refused since the last line
	told      time.Time
}

// tellEvery is the shortest time between two lines about refused connections.
const tellEvery = 10 * time.Second

// NewDoorkeeper admits as many connections at a time; name is its listener's.
func NewDoorkeeper(ln net.Listener, most int, name string, refused *prometheus.CounterVec, log *slog.Logger) *Doorkeeper {
	return &Doorkeeper{
		Listener: ln, most: most, share: most, byAddress: make(map[netip.Addr]int), log: log.With("listener", name),
		refused: func(why string) { refused.WithLabelValues(name, why).Inc() },
	}
}

// Among shares the places: an address has a quarter of them for requests, unless it is a proxy's, which speaks for many; who
// was upgraded holds a place as long as sockets counts it.
func (d *Doorkeeper) Among(sockets func() int, proxies []netip.Prefix) {
	d.share, d.shared, d.sockets = max(d.most/4, 1), proxies, sockets
}

// Accept implements [net.Listener].
func (d *Doorkeeper) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) { // the whole machine's limit, or a wrong guess
				d.turnAway(reasonDescriptors, err)
			}
			return nil, err
		}
		why := d.tooMany(addressOf(c))
		if why == "" {
			return c, nil
		}
		d.turnAway(why, nil)
		_ = c.Close()
	}
}

// tooMany tells why an address may have no further connection now; "": it may.
func (d *Doorkeeper) tooMany(addr netip.Addr) string {
	open := 0
	if d.sockets != nil {
		open = d.sockets()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case open+d.requests >= d.most:
		return reasonDescriptors
	case d.byAddress[addr] >= d.share && !within(addr, d.shared):
		return reasonAddress
	}
	return ""
}

// turnAway counts a refused connection and says so, now and then.
func (d *Doorkeeper) turnAway(why string, err error) {
	d.refused(why)
	d.mu.Lock()
	d.untold++
	n := 0
	if now := time.Now(); now.Sub(d.told) >= tellEvery {
		n, d.untold, d.told = d.untold, 0, now
	}
	d.mu.Unlock()
	if n > 0 {
		d.log.Warn("connections refused", "reason", why, "refused", n, "most", d.most, "err", err)
	}
}

// Track implements [http.Server.ConnState]. net/http calls it before it accepts the next connection, so that none slips by.
func (d *Doorkeeper) Track(c net.Conn, state http.ConnState) {
	step := 0
	switch state {
	case http.StateNew:
		step = 1
	case http.StateHijacked, http.StateClosed:
		step = -1
	default:
		return
	}
	addr := addressOf(c)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests += step
	if d.byAddress[addr] += step; d.byAddress[addr] == 0 {
		delete(d.byAddress, addr)
	}
}

func addressOf(c net.Conn) netip.Addr {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
