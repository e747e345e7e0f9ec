package admit

import (
	"net/netip"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// Arrivals decides whether an address may connect now. An address pays for itself and for the network around it.
type Arrivals struct {
	gate  *limit.Gate
	hosts *limit.Table[netip.Prefix]
	nets  *limit.Table[netip.Prefix]
}

// maxAddresses bounds the addresses and the networks that are remembered at a time. Each is forgotten once its buckets
// are full again; 100,000 cost about 20 MB.
const maxAddresses = 100_000

// fullRetry is the wait told when every place for an address is taken by a live one.
const fullRetry = 5 * time.Second

// NewArrivals asks the gate, of which it knows addresses and networks by itself.
func NewArrivals(gate *limit.Gate) *Arrivals {
	return &Arrivals{
		gate:  gate,
		hosts: limit.NewTable[netip.Prefix](limit.ScopeIP, maxAddresses),
		nets:  limit.NewTable[netip.Prefix](limit.ScopeNet, maxAddresses),
	}
}

// Acquire returns the buckets of an address and of the network around it, to be given back with release. It reports
// false when they are unknown and every place is taken by a live one.
func (a *Arrivals) Acquire(now limit.Instant, addr netip.Addr) (both []*limit.Subject, release func(), ok bool) {
	host, ok := a.hosts.Acquire(now, limit.HostPrefix(addr))
	if !ok {
		return nil, func() {}, false
	}
	network, ok := a.nets.Acquire(now, limit.NetPrefix(addr))
	if !ok {
		a.hosts.Release(host)
		return nil, func() {}, false
	}
	release = func() {
		a.hosts.Release(host)
		a.nets.Release(network)
	}
	return []*limit.Subject{&host.Subject, &network.Subject}, release, true
}

// Arrival is a socket's hold on the buckets of its address and of the network around it, until it is closed.
type Arrival struct {
	from    *Arrivals
	addr    netip.Addr
	taken   limit.Instant
	both    []*limit.Subject
	release func()
}

// Leave gives it back. It may be called once.
func (a *Arrival) Leave() {
	a.from.gate.Release(a.taken, a.request(), a.both...)
	a.release()
}

// Networks are the buckets that it holds.
func (a *Arrival) Networks() []*limit.Subject { return a.both }

// Charge takes one more arrival from the address of a socket that came with a bad token.
func (a *Arrival) Charge() {
	now, q := a.from.gate.Now(), a.request()
	if a.from.gate.Decide(now, q, a.both...).Verdict != limit.Reject {
		a.from.gate.Release(now, q, a.both...)
	}
}

func (a *Arrival) request() *limit.Request {
	return &limit.Request{Action: limit.Connect, Addr: a.addr}
}

// Admit lets a socket in, or says why not and when it may come back.
func (a *Arrivals) Admit(addr netip.Addr) (*Arrival, *protocol.Error) {
	now := a.gate.Now()
	both, release, ok := a.Acquire(now, addr)
	if !ok {
		return nil, noPlace()
	}
	at := &Arrival{from: a, addr: addr, taken: now, both: both, release: release}
	d := a.gate.Decide(now, at.request(), both...)
	switch d.Verdict {
	case limit.Allow:
		return at, nil
	case limit.Degrade: // half a socket is none
		at.Leave()
	default:
		release()
	}
	return nil, TurnedAway(d)
}

// noPlace is told where every place for an address is taken by a live one.
func noPlace() *protocol.Error {
	return &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(fullRetry)}
}

// NewRooms bounds how fast one network makes rooms that nobody has seen before. Its rule is not in the operator's set:
// it guards the node's memory and the store, and must hold whatever limits.file says.
type NewRooms struct {
	auto bool        // a room may come to be by joining it at all
	gate *limit.Gate // nil: unbounded
	nets *limit.Table[netip.Prefix]
}

// createBurst is how many seconds' worth of rooms a network may make at once.
const createBurst = 40

// LimitNewRooms lets a network make so many rooms a second, any number for 0; none comes to be without auto.
func LimitNewRooms(clock limit.Clock, auto bool, perSecond int64) (*NewRooms, error) {
	if perSecond == 0 || !auto {
		return &NewRooms{auto: auto}, nil
	}
	set := limit.Spec{Rules: []limit.Rule{{
		Name: "room-create", Action: limit.StringList{limit.Join.String()}, Scope: limit.ScopeNet.String(),
		Limit: limit.Limit{Rate: perSecond, Burst: perSecond * createBurst},
	}}}
	rules, err := set.Compile()
	if err != nil {
		return nil, err
	}
	return &NewRooms{auto: true, gate: limit.NewGate(rules, clock), nets: limit.NewTable[netip.Prefix](limit.ScopeNet, maxAddresses)}, nil
}

// Admit returns why addr may make no room now, nil when it may.
func (n *NewRooms) Admit(addr netip.Addr) *protocol.Error {
	if !n.auto {
		return &protocol.Error{Reason: protocol.ReasonNotFound, Detail: "room"}
	}
	if n.gate == nil {
		return nil
	}
	now := n.gate.Now()
	network, ok := n.nets.Acquire(now, limit.NetPrefix(addr))
	if !ok {
		return noPlace()
	}
	defer n.nets.Release(network)
	d := n.gate.Decide(now, &limit.Request{Action: limit.Join, Addr: addr}, &network.Subject)
	if d.Verdict == limit.Allow {
		return nil
	}
	return Error(protocol.ReasonRateLimited, d)
}
