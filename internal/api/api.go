package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"liveroom/internal/admit"
	"liveroom/internal/recent"
	"liveroom/internal/rulebook"
	"liveroom/internal/token"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room"
)

// Ledger reads stored gifts.
type Ledger interface {
	// Gifts returns at most limit (1 to 1000) gifts of the room with Seq above after, in order.
	Gifts(ctx context.Context, room string, after uint64, limit int) ([]protocol.StoredGift, error)
	// GiftsEnd returns the sequence of the room's last gift, 0 for none. Nothing acknowledged is beyond it.
	GiftsEnd(ctx context.Context, room string) (uint64, error)
	// LedgerID tells this ledger from any other; "" when it is not known.
	LedgerID() string
}

// Tokens verifies who a bearer is.
type Tokens interface {
	// Verify returns who signed; its error is safe to show.
	Verify(signed string) (token.Identity, error)
}

// Config is what the API is made of. Everything is required but Origins, Create, Nodes and Log.
type Config struct {
	Hub        *room.Hub
	Ledger     Ledger
	Audit      Audit
	Revoker    Revoker
	Tokens     Tokens
	Gate       *limit.Gate
	ClientAddr func(*http.Request) netip.Addr
	Origins    []string                              // whose pages may read the answers
	Guests     bool                                  // whether what viewers see is open to callers without a token
	Create     func(addr netip.Addr) *protocol.Error // asked before a call makes a room by speaking in it; nil: it may
	Book       *rulebook.Book                        // the limits in force
	Changes    Changes                               // what is thought of them
	Recent     func() recent.Traffic                 // what this node's limits decided lately
	Networks   Networks                              // the buckets of addresses that sockets come from
	Nodes      Nodes                                 // the others; nil: there are none
	Log        *slog.Logger                          // nil: nothing is logged
}

// Networks returns the buckets of an address and of the network around it, until release, which is never nil.
type Networks func(now limit.Instant, addr netip.Addr) (both []*limit.Subject, release func(), ok bool)

// API answers HTTP calls.
type API struct {
	cfg     Config // fixed after construction
	listing listing
	keys    *limit.Table[string] // by the token's user
}

// maxCallers bounds the tokens' users that are remembered at a time; each is forgotten once its buckets are full again.
const maxCallers = 100_000

// New returns an API over c.
func New(c Config) *API {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Create == nil {
		c.Create = func(netip.Addr) *protocol.Error { return nil }
	}
	return &API{cfg: c, listing: listing{turn: make(chan struct{}, 1)}, keys: limit.NewTable[string](limit.ScopeKey, maxCallers)}
}

// fullRetry is the wait told when every place for a caller is taken by a live one.
const fullRetry = 5 * time.Second

// spend takes one call from its token's bucket, or from its address' when it has none that is good. done gives back what the call
// held, and is called when it is over; it is never nil.
func (a *API) spend(r *http.Request, c caller, rt route) (done func(), refused *protocol.Error) {
	if rt.spared(c) {
		return func() {}, nil
	}
	now := a.cfg.Gate.Now()
	q := limit.Request{
		Action: limit.API, Route: rt.name(), Role: string(c.Role), User: c.User, Key: c.User, Room: r.PathValue("room"), Addr: a.cfg.ClientAddr(r),
	}
	key, addr := "", q.Addr
	if c.known { // who has a good token pays for no address
		key, addr = c.User, netip.Addr{}
	}
	all, release, refused := a.acquire(now, key, addr)
	if refused != nil {
		release()
		return func() {}, refused
	}
	d := a.cfg.Gate.Decide(now, &q, all...)
	if d.Verdict == limit.Reject {
		release()
		err := admit.Error(protocol.ReasonRateLimited, d)
		return func() {}, err
	}
	done = func() {
		a.cfg.Gate.Release(now, &q, all...)
		release()
	}
	if d.Verdict != limit.Allow { // no call of this API has a smaller form
		return done, admit.Error(protocol.ReasonRateLimited, d)
	}
	pace(r.Context(), d.Delay)
	return done, nil
}

// pace holds a call back for a leaky bucket's delay, on the call's own goroutine, unless the caller goes away.
func pace(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(min(d, room.LongestDelay)):
	case <-ctx.Done():
	}
}

// acquire returns the buckets that no room or user owns, of an API client's key and of an address and its network, and how to give them
// back. release is never nil.
func (a *API) acquire(now limit.Instant, key string, addr netip.Addr) (subjects []*limit.Subject, release func(), refused *protocol.Error) {
	full := &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(fullRetry)}
	release = func() {}
	if key != "" {
		e, ok := a.keys.Acquire(now, key)
		if !ok {
			return nil, release, full
		}
		subjects, release = append(subjects, &e.Subject), func() { a.keys.Release(e) }
	}
	if addr.IsValid() {
		both, done, ok := a.cfg.Networks(now, addr)
		if !ok {
			return nil, release, full
		}
		first := release
		subjects, release = append(subjects, both...), func() { done(); first() }
	}
	return subjects, release, nil
}
