package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/internal/admit"
	"liveroom/internal/catalogue"
	"liveroom/internal/filter"
	"liveroom/internal/journal"
	"liveroom/internal/recent"
	"liveroom/internal/rulebook"
	"liveroom/internal/token"
	"liveroom/internal/trace"
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
	Consumers  journal.Consumers             // and whoever has no name
	Webhook    func(consumer string) Webhook // of those that this node is configured for; nil: none
	Audit      Audit
	Held       Held
	Said       Said
	Filter     *filter.Book
	Revoker    Revoker
	Tokens     Tokens
	Gate       *limit.Gate
	ClientAddr func(*http.Request) netip.Addr
	Attributes []string                              // the names of what may be said of a user
	Origins    []string                              // whose pages may read the answers
	Guests     bool                                  // whether what viewers see is open to callers without a token
	Create     func(addr netip.Addr) *protocol.Error // asked before a call makes a room by speaking in it; nil: it may
	Book       *rulebook.Book                        // the limits in force
	Catalogue  *catalogue.Book                       // what can be given
	Changes    Changes                               // what is thought of them
	Recent     func() recent.Traffic                 // what this node's limits decided lately
	Networks   Networks                              // the buckets of addresses that sockets come from
	Nodes      Nodes                                 // the others; nil: there are none
	Trace      *trace.Tracer                         // nil: calls are not traced
	Ending     context.Context                       // ends when answers that wait are to end; nil: never
	Log        *slog.Logger                          // nil: nothing is logged
	Metrics    prometheus.Registerer                 // nil: nobody sees how long calls take
}

// Networks returns the buckets of an address and of the network around it, until release, which is never nil.
type Networks func(now limit.Instant, addr netip.Addr) (both []*limit.Subject, release func(), ok bool)

// API answers HTTP calls.
type API struct {
	cfg     Config                   // fixed after construction
	seconds *prometheus.HistogramVec // fixed after construction; by route and class of code
	listing listing
	keys    *limit.Table[string]        // by the token's user
	readers chan struct{}               // a place for each who waits for events
	reading map[string]prometheus.Gauge // of these, by how; fixed after construction
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
	if c.Webhook == nil {
		c.Webhook = func(string) Webhook { return nil }
	}
	if c.Ending == nil {
		c.Ending = context.Background()
	}
	a := &API{cfg: c, readers: make(chan struct{}, maxReaders), listing: listing{turn: make(chan struct{}, 1)}, keys: limit.NewTable[string](limit.ScopeKey, maxCallers)}
	a.seconds = a.measure(c.Metrics)
	a.reading = waiting(c.Metrics)
	return a
}

// limited puts next, which is given who calls, behind the limits: a call is charged to its token, or to its address when it has none
// that is good.
func (a *API) limited(rt route, next func(http.ResponseWriter, *http.Request, caller)) func(http.ResponseWriter, *http.Request, caller) {
	type key struct{}
	of := func(r *http.Request) caller { return r.Context().Value(key{}).(caller) }
	h := limit.Middleware{
		Gate: a.cfg.Gate,
		Ask: func(now limit.Instant, r *http.Request) (limit.Request, []*limit.Subject, func(), bool) {
			c := of(r)
			q := limit.Request{
				Action: limit.API, Route: rt.name(), Role: string(c.Role), User: c.User, Key: c.User, Room: r.PathValue("room"), Addr: a.cfg.ClientAddr(r),
			}
			addr := q.Addr
			if c.known { // and pays for no address
				addr = netip.Addr{}
			}
			all, release, ok := a.acquire(now, c.User, addr)
			return q, all, release, ok
		},
		Refuse: func(w http.ResponseWriter, r *http.Request, d limit.Decision) {
			if d.Rule == "" {
				a.refuse(w, r, full())
				return
			}
			a.refuse(w, r, admit.TurnedAway(d))
		},
	}.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d, _ := limit.FromContext(r.Context()); d.Verdict != limit.Allow { // no call of this API has a smaller form
			a.refuse(w, r, admit.TurnedAway(d))
			return
		}
		next(w, r, of(r))
	}))
	return func(w http.ResponseWriter, r *http.Request, c caller) {
		if rt.spared(c) {
			next(w, r, c)
			return
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, c)))
	}
}

// full is the refusal when every place for a caller is taken by a live one.
func full() *protocol.Error {
	return &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(5 * time.Second)}
}

// acquire returns the buckets that no room or user owns, of an API client's key and of an address and its network, and how to give them
// back. release is never nil.
func (a *API) acquire(now limit.Instant, key string, addr netip.Addr) (subjects []*limit.Subject, release func(), ok bool) {
	release = func() {}
	if key != "" {
		e, ok := a.keys.Acquire(now, key)
		if !ok {
			return nil, release, false
		}
		subjects, release = append(subjects, &e.Subject), func() { a.keys.Release(e) }
	}
	if addr.IsValid() {
		both, done, ok := a.cfg.Networks(now, addr)
		if !ok {
			return nil, release, false
		}
		first := release
		subjects, release = append(subjects, both...), func() { done(); first() }
	}
	return subjects, release, true
}
