package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"liveroom/fanout/link"
	"liveroom/internal/lock"
	"liveroom/protocol"
)

var (
	// ErrConflict says that what is stored was changed since the revision that the caller knows.
	ErrConflict = errors.New("fanout: changed meanwhile")
	// ErrNotFound says that the ledger has no such gift.
	ErrNotFound = errors.New("fanout: no such gift")
	// ErrStoreFull says that the store takes no writes, as after a disk was full: what comes is refused, and nothing of it stored.
	ErrStoreFull = errors.New("fanout: the store takes no writes")
	// ErrNoStore says that the store does not answer.
	ErrNoStore = errors.New("fanout: jetstream does not answer")
)

// Config says what is kept, and how it is looked after. Every field is set.
type Config struct {
	NodeID    string
	DataDir   string        // of the marks; empty: none are kept
	GiftBytes int64         // of the ledger; a gift beyond it is refused
	GiftAge   time.Duration // a gift leaves the ledger
	GiftRetry time.Duration // how long a gift's id is remembered
	Danmaku   Danmaku

	LikesGather  time.Duration // likes of different rooms are gathered for one write
	StoreTimeout time.Duration
	MeasureEvery time.Duration // the ledger is asked for its size
	GrowEvery    time.Duration // a cluster that had fewer than three servers is asked whether it can hold more replicas

	Metrics *Metrics
}

// Rooms are told what is stored of them. No method waits.
type Rooms interface {
	// Say tells how far the store is.
	Say(room string, v link.Seen)
	// SayLikes tells a new total.
	SayLikes(room string, total int64)
	// SayGift tells that the room's gifts up to one are stored; again: its stream does not tell it, or told it too soon.
	SayGift(room string, seq uint64, again bool)
	// Behind reports whether a room of this node has not been told all that somebody has seen, and tells it.
	Behind(room string, v link.Seen) bool
	// SweepSoon asks for a comparing of all rooms with the store, soon.
	SweepSoon()
}

// core is what all that is stored has in common: the way there, and what this node knows of it.
type core struct {
	// Fixed after Open.
	link        *link.Link
	log         *slog.Logger
	cfg         Config
	metrics     *Metrics
	marks       *marks
	here        *here
	buckets     buckets
	incarnation uint64 // grows with each start of any node
	rooms       Rooms  // fixed by Start

	// Guarded by themselves.
	forgotten  forgotten
	refusing   atomic.Bool               // a write failed; nothing is sent to the store
	unanswered atomic.Bool               // the last write was
	faultSoon  link.Wake                 // asks for a look at the embedded store
	reopen     atomic.Pointer[time.Time] // the streams must be looked after: since when; nil: they need not
	careSoon   link.Wake

	life  lock.Mutex[lock.Leaf]
	waits sync.WaitGroup // for servers of others
	ended bool           // guarded by life
}

// mayStore returns ErrRefused when a write would be sent to nobody.
func (c *core) mayStore(road link.Road) error {
	if !c.link.Store.IsConnected() {
		return fmt.Errorf("%w: %w", link.ErrRefused, link.ErrDisconnected)
	}
	if c.refusing.Load() {
		return fmt.Errorf("%w: %w", link.ErrRefused, ErrStoreFull)
	}
	if err := c.link.May(road); err != nil {
		return fmt.Errorf("%w: %w", link.ErrRefused, err)
	}
	return nil
}

// put stores one message. There is no second attempt: "no responders" means that nobody took it, and the client is told so at once.
// A store that has failed answers a write that waits for the disk with silence, while it still answers questions.
func (c *core) put(ctx context.Context, road link.Road, m *nats.Msg, opts ...jetstream.PublishOpt) (ack *jetstream.PubAck, err error) {
	if err := c.mayStore(road); err != nil {
		return nil, err
	}
	ctx, op := c.link.Traced(ctx, "put", c.link.Class(road))
	defer func() { op.End(err) }()
	ctx, cancel := c.link.Bounded(ctx)
	defer cancel()
	ack, err = c.link.JS.PublishMsg(ctx, m, append(opts, jetstream.WithRetryAttempts(0))...)
	return ack, c.settled(err)
}

// post is put that does not wait: what is begun first is stored first. done is called once, within that time.
func (c *core) post(road link.Road, m *nats.Msg, within time.Duration, done func(*jetstream.PubAck, error)) {
	if err := c.mayStore(road); err != nil {
		done(nil, err)
		return
	}
	answer, err := c.link.JS.PublishMsgAsync(m, jetstream.WithRetryAttempts(0))
	if err != nil {
		done(nil, c.settled(err))
		return
	}
	waits := c.wait(func() {
		patience := time.NewTimer(within)
		defer patience.Stop()
		select {
		case ack := <-answer.Ok():
			done(ack, c.settled(nil))
		case err := <-answer.Err():
			done(nil, c.settled(err))
		case <-patience.C:
			done(nil, fmt.Errorf("%w: %w", link.ErrUnknown, context.DeadlineExceeded))
		}
	})
	if !waits {
		done(nil, fmt.Errorf("%w: %w", link.ErrUnknown, link.ErrClosed))
	}
}

// wait runs f in a goroutine that Close waits for; false: it is closed.
func (c *core) wait(f func()) bool {
	c.life.Lock()
	defer c.life.Unlock()
	if !c.ended {
		c.waits.Go(f)
	}
	return !c.ended
}

// patience is how long an answer is waited for, unless ctx ends before: one that waits in line for the whole time-out has half of it left.
func (c *core) patience(ctx context.Context) time.Duration {
	longest := c.cfg.StoreTimeout + c.cfg.StoreTimeout/2
	if at, ok := ctx.Deadline(); ok {
		return min(longest, time.Until(at))
	}
	return longest
}

// answerOf waits for what begin is answered.
func answerOf[T any](ctx context.Context, within time.Duration, begin func(within time.Duration, done func(T, error))) (T, error) {
	type answer struct {
		got T
		err error
	}
	answers := make(chan answer, 1)
	begin(within, func(got T, err error) { answers <- answer{got, err} })
	select {
	case a := <-answers:
		return a.got, a.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("%w: %w", link.ErrUnknown, ctx.Err())
	}
}

// settled says what the store's answer to a write means, and notes whether there was one.
func (c *core) settled(err error) error {
	silent := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, jetstream.ErrAsyncPublishTimeout) || errors.Is(err, jetstream.ErrNoStreamResponse)
	if c.unanswered.Store(silent); silent {
		c.faultSoon.Soon()
	}
	switch {
	case err == nil:
		return nil
	case wrongLast(err):
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return fmt.Errorf("%w: %w", storeFailure(err), err)
}

// drop takes a stored message away; false when it was not there.
func (c *core) drop(ctx context.Context, stream string, seq uint64) (was bool, err error) {
	ctx, op := c.link.Traced(ctx, "delete", stream)
	defer func() { op.End(err) }()
	ctx, cancel := c.link.Bounded(ctx)
	defer cancel()
	answer, err := c.link.Store.RequestWithContext(ctx, "$JS.API.STREAM.MSG.DELETE."+stream, fmt.Appendf(nil, `{"seq":%d,"no_erase":true}`, seq))
	if err != nil {
		return false, fmt.Errorf("drop %d of %s: %w", seq, stream, err)
	}
	var got struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &got); err != nil {
		return false, fmt.Errorf("drop %d of %s: %w", seq, stream, err)
	}
	if got.Error == nil {
		return true, nil
	}
	// The server has one word for all that may be wrong with it.
	if _, there, err := c.link.LeaderGet(ctx, stream, link.Ask{Seq: seq}); err == nil && !there {
		return false, nil
	}
	return false, fmt.Errorf("drop %d of %s: %w", seq, stream, got.Error)
}

// errCodeDuplicateInProcess: the same message id is on its way into a replicated stream (nats-server error 10158).
const errCodeDuplicateInProcess = 10158

// storeFailure tells refusals, after which nothing is stored, from silence, after which nobody knows.
func storeFailure(err error) error {
	switch code := apiCode(err); code {
	case 0:
	case errCodeDuplicateInProcess:
		return link.ErrUnknown
	default:
		return link.ErrRefused // the server answered that it did not store
	}
	// nats.ErrConnectionClosed is not among them: nats.go returns it for a request whose connection broke under way.
	for _, unsent := range []error{
		link.ErrDisconnected, nats.ErrReconnectBufExceeded, nats.ErrNoResponders, nats.ErrMaxPayload, jetstream.ErrNoStreamResponse,
	} {
		if errors.Is(err, unsent) {
			return link.ErrRefused
		}
	}
	return link.ErrUnknown
}

// wrongLast reports whether a subject has another message than was expected, or one on its way into a replicated stream.
func wrongLast(err error) bool {
	code := apiCode(err)
	return code == jetstream.JSErrCodeStreamWrongLastSequence || code == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

// apiCode is the error that JetStream answered with, 0 for none.
func apiCode(err error) jetstream.ErrorCode {
	var api jetstream.JetStreamError
	if errors.As(err, &api) && api.APIError() != nil {
		return api.APIError().ErrorCode
	}
	return 0
}

// Storing returns nil when the store takes writes, as far as the last ones tell, and otherwise why not.
func (c *core) Storing() error {
	if c.refusing.Load() {
		return ErrStoreFull
	}
	if !c.link.Embedded() && c.unanswered.Load() {
		return ErrNoStore
	}
	return nil
}

// LookAfter asks for care of the streams: a server that was restarted has lost those in memory, or all.
func (c *core) LookAfter() {
	now := time.Now()
	c.reopen.Store(&now)
	c.careSoon.Soon()
}

// storeSettles is how long likes wait after a reconnect until it is known whether the store still has its counters.
const storeSettles = 5 * time.Second

// storeUnsure reports whether the streams may be gone: what was counted now would be taken for part of the loss.
func (c *core) storeUnsure(now time.Time) bool {
	since := c.reopen.Load()
	return since != nil && now.Sub(*since) < storeSettles && !c.link.Closed()
}

// Store is what a node keeps at NATS. All methods, and those of its parts, may be called from any goroutine.
type Store struct {
	*core
	Gifts     *Ledger
	Payments  *Payments
	Likes     *LikeTotals
	Settings  *RoomSettings
	Rules     *Editions // sets of limits
	Catalogue *Editions // of gifts
	Filter    *Editions // the platform's list of words
	Revoked   *Revocations
	Secrets   *Secrets
	Audit     *AuditLog
	Shows     *Shows
	Recent    *RecentLog
	Journal   *Journal
	Readers   *Readers
	Held      *Held
	Erasures  *Erasures
	Letters   *Letters

	replicas   atomic.Int64         // of the streams, 0 before they are open
	made       map[string]time.Time // when each stream was made; owned by Open, then by the loop of care
	volumeTold bool                 // that the volume is nearly full; owned by the loop of keep
}

// Open creates the streams that are missing, compares what is there with what this node knows, and numbers this start. What was
// opened is in s also when there is an error.
func Open(ctx context.Context, l *link.Link, cfg Config) (s *Store, err error) {
	c := &core{link: l, log: l.Log, cfg: cfg, metrics: cfg.Metrics, here: newHere(), faultSoon: link.NewWake(), careSoon: link.NewWake()}
	gifts := &Ledger{core: c}
	if l.Embedded() {
		gifts.groups = c.inGroups(link.RoadGift, gifts.synced)
	}
	s = &Store{
		core: c, Gifts: gifts, Payments: &Payments{Ledger: gifts}, Likes: &LikeTotals{core: c, book: newLikeBook()}, Settings: &RoomSettings{core: c},
		Rules: &Editions{core: c, of: c.here.limits()}, Catalogue: &Editions{core: c, of: c.here.gifts()}, Filter: &Editions{core: c, of: c.here.words()},
		Revoked: &Revocations{core: c, at: map[string]time.Time{}}, Secrets: &Secrets{core: c, known: map[string]string{}},
		Audit: &AuditLog{c}, Shows: &Shows{c}, Recent: &RecentLog{c}, Journal: &Journal{c}, Readers: &Readers{c}, Held: &Held{c}, Erasures: &Erasures{c}, Letters: &Letters{c}, made: map[string]time.Time{},
	}
	if l.Embedded() {
		s.Payments.intents = c.inGroups(link.RoadIntent, func([]*write) {})
	}
	var known bool
	if c.marks, known, err = openMarks(cfg.DataDir, c.log); err != nil {
		return s, err
	}
	// A store that is gone begins beyond what was given out.
	c.here.gift.meet(c.marks.last(link.GiftStream))
	c.here.settings.meet(c.marks.last(settingsStream))
	c.here.acts.meet(c.marks.last(link.ActStream))
	c.here.rules.meet(c.marks.last(link.RulesStream))
	c.here.catalogue.meet(c.marks.last(link.CatalogueStream))
	c.here.filter.meet(c.marks.last(link.FilterStream))
	if err = s.openStore(ctx); err != nil {
		return s, err
	}
	if err = s.checkStore(ctx, known); err != nil {
		return s, err
	}
	if err = s.Likes.restore(ctx); err != nil {
		return s, err
	}
	if c.incarnation, err = c.buckets.nodes.PutString(ctx, protocol.Token(cfg.NodeID), time.Now().UTC().Format(time.RFC3339)); err != nil {
		return s, fmt.Errorf("number this start: %w", err)
	}
	s.Gifts.Measure(ctx)
	return s, nil
}

// Incarnation is this start's number: it grows with each start of any node.
func (s *Store) Incarnation() uint64 { return s.incarnation }

// Start begins to look after what is stored, in loops that end with ctx. opening bounds the first looks.
func (s *Store) Start(ctx, opening context.Context, loops *sync.WaitGroup, rooms Rooms) error {
	s.rooms = rooms
	if err := s.Settings.follow(opening); err != nil {
		return err
	}
	for _, w := range []*link.Follower{s.Settings.follower, s.Secrets.follow()} {
		_ = w.LookOnce(opening) // its loop looks again
		loops.Go(func() { w.Run(ctx) })
	}
	loops.Go(func() { s.Likes.run(ctx) })
	loops.Go(func() { s.marks.keep(ctx) })
	if s.link.Embedded() {
		loops.Go(func() { s.Gifts.groups.run(ctx) })
		loops.Go(func() { s.Payments.intents.run(ctx) })
		loops.Go(func() { s.Gifts.prove(ctx) })
		loops.Go(func() { s.keep(ctx) })
	} else {
		loops.Go(func() { trial{s.core, int(s.replicas.Load())}.run(ctx) })
	}
	loops.Go(func() { link.Every(ctx, s.cfg.MeasureEvery, nil, s.Gifts.Measure) })
	loops.Go(func() { link.Every(ctx, s.cfg.GrowEvery, s.careSoon, s.care) })
	return nil
}

// Close writes what is known of the store; the loops have ended.
func (s *Store) Close() {
	s.life.Lock()
	s.ended = true
	s.life.Unlock()
	s.waits.Wait()
	if s.marks != nil {
		s.marks.close()
	}
}

// Metrics tell how the store is.
type Metrics struct {
	gifts                                        map[string]prometheus.Counter // by result
	auditDropped                                 prometheus.Counter
	giftTime, group                              prometheus.Histogram
	giftBytes, giftLimit, volume, likes, syncing prometheus.Gauge
}

// Results of a gift.
const (
	giftStored    = "stored"
	giftDuplicate = "duplicate"
	giftRefused   = "refused"
	giftUnknown   = "unknown"
	giftLate      = "late" // refused, since the disk is slower than what comes
)

// NewMetrics registers the metrics with r, created at zero. With a nil r they are counted and shown to nobody.
func NewMetrics(r prometheus.Registerer) *Metrics {
	f := promauto.With(r)
	gauge := func(name, help string) prometheus.Gauge {
		return f.NewGauge(prometheus.GaugeOpts{Name: "liveroom_" + name, Help: help})
	}
	return &Metrics{
		gifts: link.Counters(r, "gifts_total", "Gifts handed to the ledger.", "result", giftStored, giftDuplicate, giftRefused, giftUnknown, giftLate),
		auditDropped: f.NewCounter(prometheus.CounterOpts{
			Name: "liveroom_audit_dropped_total", Help: "Entries of rooms' audits that made place for newer ones, of a room beyond its newest 1,000.",
		}),
		giftTime: f.NewHistogram(prometheus.HistogramOpts{
			Name: "liveroom_bus_gift_seconds", Help: "Time from a gift to the ledger's answer.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 12),
		}),
		group: f.NewHistogram(prometheus.HistogramOpts{
			Name: "liveroom_bus_gift_group", Help: "Gifts that went to the embedded server's disk together.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 10),
		}),
		giftBytes: gauge("bus_gift_ledger_bytes", "Size of the gift ledger."),
		giftLimit: gauge("bus_gift_ledger_limit_bytes", "Size at which the ledger refuses gifts; alert at 80 %."),
		volume: gauge("data_volume_used_ratio",
			"Used part of the data directory's volume, 0 to 1; at 1 nothing is stored. 0 with NATS servers of others."),
		likes: gauge("bus_likes_unstored", "Likes that wait to be stored."),
		syncing: gauge("bus_sync_seconds",
			"How much longer the NATS servers took at start for a write to disk than for one to memory; 0: embedded, or not measured."),
	}
}
