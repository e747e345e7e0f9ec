package fanout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/internal/lock"
)

// Fabric is one node's end of what the nodes share. Its methods may be called from any goroutine.
type Fabric struct {
	// Fixed after Open.
	cfg         Config
	log         *slog.Logger
	metrics     *Metrics
	server      *embedded  // nil with URLs
	live        *nats.Conn // rooms' subscriptions, danmaku, presence
	store       *nats.Conn // JetStream: apart, because the server answers a read on the reader's connection, in its turn
	js          jetstream.JetStream
	buckets     buckets
	incarnation uint64    // grows with each start of any node
	began       time.Time // of this incarnation
	met         []string  // who answered at the start
	health      [2]*probe
	ctx         context.Context // the Fabric's own lifetime: of its loops and of its answers to other nodes
	stop        context.CancelFunc
	ended       chan struct{} // closed with conflict
	closing     chan struct{} // closed by Close

	// Guarded by themselves.
	roster      *roster
	likes       *likeBook
	totals      *totals
	parcels     *parcels
	ledgerID    atomic.Pointer[string] // set with the streams
	marks       *marks
	lost        atomic.Pointer[error] // see LedgerWhole
	revocations revocations
	known       known
	storeIs     atomic.Uint32                                 // a storeState
	unanswered  atomic.Bool                                   // the last write was
	volumeTold  atomic.Bool                                   // that the volume is nearly full
	rules       atomic.Pointer[record]                        // the newest set that this node has met
	revoker     atomic.Pointer[func(string, time.Time, bool)] // who is told what is revoked here
	roads       *roads
	connections atomic.Uint64 // losses and returns of connections
	changed     atomic.Int64  // the last of them, nanoseconds after roads.began
	presence    *follower
	replicas    atomic.Int64              // of the streams, 0 before they are open
	reopen      atomic.Pointer[time.Time] // the streams must be looked after: since when; nil: they need not
	raises      atomic.Uint64             // likes that this node has restored, for their ids
	wanted      atomic.Bool               // somebody wants all of this node's rooms
	running     atomic.Bool               // everything fixed is set
	conflict    atomic.Pointer[error]     // why this node must end

	// The loops, and what asks them for a round.
	loops        sync.WaitGroup
	sweepSoon    wake
	storeSoon    wake
	careSoon     wake
	announceSoon wake

	made map[string]time.Time // when each stream was made; owned by Open, then by the care loop

	mu        lock.Mutex[lock.Fabric] // taken alone; never held over a call to NATS or to a handler
	subs      map[string]*Subscription
	verbs     map[string]*answering
	secrets   map[string]string // that the nodes agreed on
	followers map[string]*follower
	rooms     RoomCounts
	ledger    LedgerSize // when last asked
	stored    bool       // it answered then
	closed    bool
}

// Open connects, starting the embedded server when there are no URLs, and creates the streams that are missing. ctx
// bounds the opening alone.
func Open(ctx context.Context, cfg Config, log *slog.Logger) (*Fabric, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	f := &Fabric{
		cfg: cfg, log: log, metrics: cfg.Metrics,
		likes: newLikeBook(), totals: newTotals(), parcels: newParcels(), made: map[string]time.Time{},
		subs: map[string]*Subscription{}, verbs: map[string]*answering{}, secrets: map[string]string{}, followers: map[string]*follower{}, roads: newRoads(cfg.NodeID),
		sweepSoon: newWake(), storeSoon: newWake(), careSoon: newWake(), announceSoon: newWake(),
		ended: make(chan struct{}), closing: make(chan struct{}),
	}
	if err := f.open(ctx); err != nil {
		f.shut()
		return nil, fmt.Errorf("open fanout: %w", err)
	}
	return f, nil
}

func (f *Fabric) open(ctx context.Context) error {
	var err error
	var known bool
	if f.marks, known, err = openMarks(f.cfg.DataDir, f.log); err != nil {
		return err
	}
	// A store that is gone begins beyond what was given out.
	f.known.gift.meet(f.marks.last(giftStream))
	f.known.settings.meet(f.marks.last(settingsStream))
	f.known.rules.meet(f.marks.last(rulesStream))
	if len(f.cfg.URLs) == 0 {
		if f.server, err = startEmbedded(f.cfg, f.log); err != nil {
			return err
		}
	}
	if f.live, err = f.connect("live"); err != nil {
		return err
	}
	if f.store, err = f.connect("store"); err != nil {
		return err
	}
	if f.server == nil {
		if err = f.tryRoads(ctx, true); err != nil {
			return err
		}
	}
	if f.js, err = jetstream.New(f.store, jetstream.WithPublishAsyncTimeout(f.cfg.StoreTimeout)); err != nil {
		return err
	}
	if f.buckets, err = f.openStore(ctx); err != nil {
		return err
	}
	if err := f.checkStore(ctx, known); err != nil {
		return err
	}
	if err := f.restoreLikes(ctx); err != nil {
		return err
	}
	if f.incarnation, err = f.buckets.nodes.PutString(ctx, nodeKey(f.cfg.NodeID), time.Now().UTC().Format(time.RFC3339)); err != nil {
		return fmt.Errorf("number this start: %w", err)
	}
	f.began = time.Now()
	f.roster = newRoster(f.cfg.NodeID, f.cfg.NodeTimeout)
	if f.server == nil {
		if err := f.meet(ctx); err != nil {
			return err
		}
	}
	f.measureLedger(ctx)
	return f.run(ctx)
}

// run starts the loops, each ended by stop and waited for by Close.
func (f *Fabric) run(opening context.Context) error {
	f.presence = f.follow(FollowPresence, f.cfg.AnnounceEvery, f.cfg.NodeTimeout, nil)
	for subject, h := range map[string]nats.MsgHandler{
		nodePrefix + "*.presence": f.hear, whoSubject: f.sayWho, wholeSubject(f.cfg.NodeID): f.sayWhole,
	} {
		if _, err := f.live.Subscribe(subject, h); err != nil {
			return fmt.Errorf("subscribe to %s: %w", subject, err)
		}
	}
	for i, c := range []*nats.Conn{f.live, f.store} {
		p, err := newProbe(c, probeSubject(f.cfg.NodeID, [...]string{"live", "store"}[i]))
		if err != nil {
			return fmt.Errorf("subscribe to the probe: %w", err)
		}
		f.health[i] = p
	}
	if _, err := f.store.Subscribe(nodeSubject(f.cfg.NodeID, "parcel"), f.handOut); err != nil {
		return fmt.Errorf("subscribe to requests for parcels: %w", err)
	}
	if _, err := f.live.Subscribe(roomPrefix+f.roads.room+".>", f.heardProbe); err != nil {
		return fmt.Errorf("subscribe to the probe's room: %w", err)
	}
	settings, err := f.followSettings(opening)
	if err != nil {
		return fmt.Errorf("follow settings: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	f.ctx, f.stop = ctx, stop
	f.changed.Store(int64(time.Since(f.roads.began))) // nothing was sent over the roads while this node opened
	f.running.Store(true)
	f.setConnected()
	f.loops.Go(func() { f.announceLoop(ctx) })
	f.loops.Go(func() { f.probeLoop(ctx) })
	f.loops.Go(func() { f.likeLoop(ctx) })
	f.loops.Go(func() { f.marks.keep(ctx) })
	if f.server != nil {
		f.loops.Go(func() { f.proveLedger(ctx) })
	}
	if f.server == nil {
		f.loops.Go(func() { f.trySync(ctx) })
	} else {
		f.loops.Go(func() { f.keepStore(ctx) })
	}
	f.loops.Go(func() { every(ctx, f.cfg.ProbeEvery, nil, f.measureLedger) })
	_ = settings.lookOnce(opening) // its loop looks again
	f.loops.Go(func() { settings.run(ctx) })
	for _, w := range []*follower{f.followRooms(), f.followSecrets()} {
		_ = w.lookOnce(opening) // its loop looks again
		f.loops.Go(func() { w.run(ctx) })
	}
	if f.server == nil {
		f.loops.Go(func() {
			every(ctx, f.cfg.SweepEvery, f.roads.soon, func(ctx context.Context) { _ = f.tryRoads(ctx, false) })
		}) // kept by the roads
	}
	f.loops.Go(func() { every(ctx, f.cfg.GrowEvery, f.careSoon, f.care) })
	select {
	case <-f.presence.news: // ready means heard
	case <-time.After(f.cfg.StoreTimeout):
	case <-opening.Done():
	}
	return nil
}

// Close stores the likes that wait, says goodbye to the other nodes, lets the handlers finish what has arrived, and
// stops the embedded server. It returns after the last goroutine; beyond ctx it cuts short what is not done. A second
// call returns ErrClosed.
func (f *Fabric) Close(ctx context.Context) error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return ErrClosed
	}
	f.closed = true
	f.mu.Unlock()
	close(f.closing)
	f.stop()
	f.loops.Wait()
	err := errors.Join(f.flushLikes(ctx), f.goodbye(ctx), drain(ctx, f.live))
	f.shut()
	return err
}

// shut closes what is open, in reverse.
func (f *Fabric) shut() {
	for _, c := range []*nats.Conn{f.live, f.store} {
		if c != nil {
			c.Close()
		}
	}
	if f.server != nil {
		f.server.stop()
	}
	if f.marks != nil {
		f.marks.close()
	}
}

// isClosed reports whether Close has begun.
func (f *Fabric) isClosed() bool {
	select {
	case <-f.closing:
		return true
	default:
		return false
	}
}
