package room

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
	"liveroom/protocol"
)

// Hub holds the rooms and users of one node. It is safe for concurrent use.
type Hub struct {
	// fixed
	cfg       Config
	gate      *limit.Gate
	stamps    *stamper
	global    limit.Subject // of everything on this node
	bus       Bus
	catalogue map[string]protocol.CatalogueGift
	done      chan struct{} // closed when goroutines shall end

	overload  overload
	turnstile turnstile

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
	warned sync.Map // of what is wrong, to when it was logged last
}

// New returns a Hub and starts its sweeper and, with [Config.Lag], what watches it. The error is everything that is wrong with cfg.
func New(cfg Config) (*Hub, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	h := &Hub{
		cfg: cfg, gate: cfg.Gate, stamps: newStamper(cfg.Gate.Now, cfg.Now), global: limit.Subject{Scope: limit.ScopeGlobal}, bus: cfg.Bus, done: make(chan struct{}),
		catalogue: make(map[string]protocol.CatalogueGift, len(cfg.Gifts)),
		rooms:     map[string]*Room{}, users: map[string]*User{},
		idleRooms: map[*Room]struct{}{}, idleUsers: map[*User]limit.Instant{},
	}
	for _, g := range cfg.Gifts {
		h.catalogue[g.ID] = g
	}
	h.spawn(h.sweep)
	cfg.Metrics.behind(0, rungNormal, cfg.Tick)
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
	const every = 10 * time.Second
	now := h.gate.Now()
	if last, ok := h.warned.Load(what); ok && now.Sub(last.(limit.Instant)) < every {
		return
	}
	h.warned.Store(what, now)
	h.cfg.Log.Warn(what, "room", room, "err", err)
}
