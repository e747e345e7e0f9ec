package room

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"liveroom/internal/filter"
	"liveroom/internal/lock"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room/audience"
)

// Hub holds the rooms and users of one node. It is safe for concurrent use.
type Hub struct {
	// fixed
	cfg       Config
	gate      *limit.Gate
	part      string // names this start of this node in counts
	stamps    *stamper
	global    limit.Subject // of everything on this node
	bus       Bus
	showing   audience.Env
	catalogue atomic.Pointer[catalogue]
	offered   chan struct{} // has one place; asks that all rooms are told of the catalogue
	done      chan struct{} // closed when goroutines shall end

	overload  overload
	turnstile turnstile
	giftLine  turnstile // of gifts, which wait behind no danmaku

	queue queue                      // of what waits for staff
	words atomic.Pointer[filter.Set] // the platform's list

	types  []string     // of custom events; fixed
	erased erased       // what users said that is to be forgotten
	heard  heard        // custom events that are for all rooms
	toCast chan *custom // of them those that wait for their turn

	// mu guards what follows, Room.refs and User.refs.
	mu        lock.Mutex[lock.Hub]
	rooms     map[string]*Room
	users     map[string]*User
	idleRooms map[*Room]struct{}
	idleUsers map[*User]limit.Instant // to when looking again is of use
	closing   bool

	// life guards the start of goroutines against the end of the hub. A leaf.
	life   lock.Mutex[lock.Life]
	ended  bool
	owned  sync.WaitGroup
	crew   crew
	warned sync.Map // of what is wrong, to when it was logged last
}

// New returns a Hub and starts its sweeper and, with [Config.Lag], what watches it. The error is everything that is wrong with cfg.
func New(cfg Config) (*Hub, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	filter.Warm()
	h := &Hub{
		cfg: cfg, gate: cfg.Gate, stamps: newStamper(cfg.Gate.Now, cfg.Now), global: limit.Subject{Scope: limit.ScopeGlobal}, bus: cfg.Bus, done: make(chan struct{}), crew: crew{next: make(chan func())},
		offered: make(chan struct{}, 1),
		rooms:   map[string]*Room{}, users: map[string]*User{},
		idleRooms: map[*Room]struct{}{}, idleUsers: map[*User]limit.Instant{},
		giftLine: turnstile{gifts: true}, queue: queue{rooms: map[string]map[string]waiting{}}, types: cfg.EventTypes, toCast: make(chan *custom, maxCasts),
	}
	h.part = fmt.Sprint(cfg.Node, "-", cfg.Now().UnixMilli())
	h.catalogue.Store(newCatalogue(protocol.Catalogue{Gifts: cfg.Gifts}))
	h.showing = audience.Env{
		Config: cfg.Audience, Clock: cfg.Gate.Now, Wall: h.stamps.at, Stretch: h.stretched, Run: h.show, Done: h.done, Metrics: cfg.Metrics.audience,
	}
	h.spawn(h.sweep)
	h.spawn(h.keepShows)
	h.spawn(h.castAll)
	h.spawn(h.noteVisits)
	h.spawn(h.overdue)
	cfg.Metrics.behind(0, rungNormal, cfg.Audience.Tick)
	if cfg.Lag != nil {
		h.spawn(h.watch)
	}
	return h, nil
}

// spawn runs f in a goroutine that Close waits for; false when the hub has ended.
func (h *Hub) spawn(f func()) bool {
	h.life.Lock()
	defer h.life.Unlock()
	if h.ended {
		return false
	}
	h.owned.Go(f)
	return true
}

// crew are goroutines that show one room after the other: growing a new stack for each flush of a small room cost 7 % of a
// node's time. As many work as rooms have something to show; of those restAtMost for each processor wait for more.
type crew struct {
	next    chan func()
	resting atomic.Int32
}

const restAtMost = 8

// show is spawn for what is short and often.
func (h *Hub) show(f func()) bool {
	select {
	case h.crew.next <- f:
		return true
	default:
		return h.spawn(func() { h.work(f) })
	}
}

func (h *Hub) work(f func()) {
	c := &h.crew
	for {
		f()
		if c.resting.Add(1) > int32(restAtMost*runtime.GOMAXPROCS(0)) {
			c.resting.Add(-1)
			return
		}
		select {
		case f = <-c.next:
			c.resting.Add(-1)
		case <-h.done:
			return
		}
	}
}

// Room returns the open room of that id.
func (h *Hub) Room(id string) (*Room, bool) {
	h.mu.Lock()
	r := h.rooms[id]
	h.mu.Unlock()
	if r == nil {
		return nil, false
	}
	select {
	case <-r.ready:
		return r, r.openErr == nil
	default:
		return nil, false
	}
}

// opened returns the rooms whose opening has not failed.
func (h *Hub) opened() []*Room {
	h.mu.Lock()
	defer h.mu.Unlock()
	rooms := make([]*Room, 0, len(h.rooms))
	for _, r := range h.rooms {
		select {
		case <-r.ready:
			rooms = append(rooms, r)
		default:
		}
	}
	return rooms
}

// Rooms returns this node's open rooms, those with most sessions first.
func (h *Hub) Rooms() []Summary {
	rooms := h.opened()
	list := make([]Summary, 0, len(rooms))
	for _, r := range rooms {
		list = append(list, r.Summary())
	}
	slices.SortFunc(list, func(a, b Summary) int {
		if a.Online != b.Online {
			return b.Online - a.Online
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list
}

// Close refuses newcomers, hands pending likes to the bus, ends every subscription and waits for the hub's goroutines,
// all within ctx. Members are the wiring's to close before.
func (h *Hub) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closing = true
	h.mu.Unlock()

	h.life.Lock()
	if !h.ended {
		h.ended = true
		close(h.done)
	}
	h.life.Unlock()
	ended := make(chan struct{})
	go func() { // ends when the hub's goroutines have; ctx only bounds how long Close waits for it
		h.owned.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		return fmt.Errorf("room: close: %w", context.Cause(ctx))
	}
	h.storeShows(ctx, true)
	h.mu.Lock()
	rooms := slices.Collect(maps.Values(h.rooms)) // what the sweeper has closed is not among them any more
	h.mu.Unlock()
	var faults []error
	for _, r := range rooms {
		if err := await(ctx, r.ready); err != nil {
			faults = append(faults, fmt.Errorf("room: close %s: %w", r.id, err))
			continue
		}
		if r.openErr == nil {
			faults = append(faults, r.close())
		}
	}
	h.mu.Lock()
	clear(h.rooms)
	clear(h.idleRooms)
	h.cfg.Metrics.rooms.Set(0)
	h.mu.Unlock()
	return errors.Join(faults...)
}

// troubled logs what is wrong, each kind at most once in ten seconds.
func (h *Hub) troubled(what, room string, err error) {
	h.troubledIn(context.Background(), what, room, err)
}

// troubledIn is troubled by what belongs to a trace.
func (h *Hub) troubledIn(ctx context.Context, what, room string, err error) {
	const every = 10 * time.Second
	now := h.gate.Now()
	if last, ok := h.warned.Load(what); ok && now.Sub(last.(limit.Instant)) < every {
		return
	}
	h.warned.Store(what, now)
	h.cfg.Log.WarnContext(ctx, what, "room", room, "err", err)
}

// stamper turns instants of the gate's clock into times that people and other nodes understand. A message carries the
// instant at which it was admitted, not the one at which its goroutine came to look at a clock: between the two a
// process may be stopped for seconds, and the quota is kept by the first.
type stamper struct {
	clock limit.Clock
	wall  func() time.Time

	offset atomic.Int64 // Unix ns at the clock's zero
	read   atomic.Int64 // the clock, when offset was taken; 0: never
}

const (
	// offsetFor is how long an offset is used, so that corrections of the wall clock show.
	offsetFor = time.Second
	// readWithin bounds how far apart the two readings of an offset may be. One that took longer was interrupted, and is
	// taken again the next time.
	readWithin = 100 * time.Microsecond
)

func newStamper(clock limit.Clock, wall func() time.Time) *stamper {
	return &stamper{clock: clock, wall: wall}
}

// at returns an instant as Unix ms.
func (s *stamper) at(i limit.Instant) int64 {
	now := s.clock()
	last := limit.Instant(s.read.Load())
	if last == 0 || now.Sub(last) >= offsetFor {
		wall := s.wall().UnixNano()
		if after := s.clock(); last == 0 || after.Sub(now) <= readWithin {
			s.offset.Store(wall - int64(now))
			s.read.Store(max(int64(now), 1))
		}
	}
	return (s.offset.Load() + int64(i)) / int64(time.Millisecond)
}

// admittedAt is when a decision that was asked for at now let a message out, as Unix ms: what is paced, at its turn.
func (h *Hub) admittedAt(now limit.Instant, d limit.Decision) int64 {
	return h.stamps.at(max(d.At, now).Add(min(d.Delay, LongestDelay)))
}

// steppedBy is how far the wall clock may have been set before what waits for a time of day is told.
const steppedBy = time.Second

// wallAhead is how far the wall clock is ahead of the gate's; only its changes mean anything.
func (h *Hub) wallAhead() time.Duration {
	return time.Duration(h.cfg.Now().UnixNano() - int64(h.gate.Now()))
}

// followStep arms the ends of all tokens anew, since timers do not follow the wall clock.
func (h *Hub) followStep() {
	for _, r := range h.opened() {
		for _, m := range r.audience.Where(func(*Member) bool { return true }) {
			m.expireWithToken()
		}
	}
}
