package room

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"liveroom/protocol"
)

// memoryBus is a Bus in memory for any number of hubs. It delivers in the publisher's goroutine.
type memoryBus struct {
	mu       sync.Mutex
	feeds    map[string][]Feed
	recent   map[string][][]byte
	likes    map[string]int64
	settings map[string]revised
	acts     map[string][]protocol.StoredAct
	shows    map[string]revised
	ledger   []ledgerEntry
	audit    []string
	notes    []string
	erasures []Erasure
	erased   sync.Map // user: until when; feeds ask for it while mu is held
	ids      map[string]uint64
	held     map[string]revised // by room and mid
	heard    []func(room string, seq uint64, value []byte)

	broken   bool   // nothing can be subscribed to
	blind    bool   // the store does not answer when a room opens
	down     bool   // danmaku, commands, likes, gifts and settings are refused
	mute     bool   // gifts are stored, their answers lost
	late     bool   // gifts would wait for too long
	unheard  bool   // what is stored is not announced
	actless  bool   // acts are refused
	storing  func() // before settings are stored
	gate     chan struct{}
	opening  chan struct{} // holds Subscribe until closed
	ledgerID string
	acted    uint64   // number of the last act
	stores   int      // calls of StoreGift, and of PutHeld that stored
	lined    []string // ids of gifts in the order of their StoreGift
}

type revised struct {
	value    []byte
	revision uint64
}

type ledgerEntry struct {
	room string
	protocol.StoredGift
}

var errDown = errors.New("bus is down")

func newMemoryBus() *memoryBus {
	return &memoryBus{
		feeds: map[string][]Feed{}, recent: map[string][][]byte{}, likes: map[string]int64{},
		held: map[string]revised{}, settings: map[string]revised{}, acts: map[string][]protocol.StoredAct{}, shows: map[string]revised{}, ids: map[string]uint64{},
	}
}

var _ Bus = (*memoryBus)(nil)

func (b *memoryBus) Note(room string, event []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return errDown
	}
	b.notes = append(b.notes[max(0, len(b.notes)-99):], room+" "+string(event))
	return nil
}

func (b *memoryBus) PutHeld(_ context.Context, room, mid string, value []byte, last uint64, done bool) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.held[room+"/"+mid]
	switch {
	case b.down, b.mute && done:
		return 0, errDown
	case was.revision != last:
		return 0, fmt.Errorf("%w: held message of number %d", ErrConflict, was.revision)
	}
	b.stores++
	b.held[room+"/"+mid] = revised{value, uint64(b.stores)}
	for _, hear := range b.heard {
		hear(room, uint64(b.stores), value)
	}
	return uint64(b.stores), nil
}

func (b *memoryBus) ReadHeld(_ context.Context, room, mid string) ([]byte, uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return nil, 0, errDown
	}
	was := b.held[room+"/"+mid]
	return was.value, was.revision, nil
}

func (b *memoryBus) Audit(_ context.Context, room string, entry []byte) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return 0, errDown
	}
	b.audit = append(b.audit, room+" "+string(entry))
	return uint64(len(b.audit)), nil
}

func (b *memoryBus) Audited(_ context.Context, room string, seq uint64) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return nil, errDown
	}
	if seq > uint64(len(b.audit)) {
		return nil, nil
	}
	entry, ok := strings.CutPrefix(b.audit[seq-1], room+" ")
	if !ok {
		return nil, nil
	}
	return []byte(entry), nil
}

// set changes how the bus behaves.
func (b *memoryBus) set(f func(*memoryBus)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b)
}

// total returns a room's stored likes.
func (b *memoryBus) total(room string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.likes[room]
}

func (b *memoryBus) Subscribe(_ context.Context, room string, f Feed) (Opening, func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if hold := b.opening; hold != nil {
		b.mu.Unlock()
		<-hold
		b.mu.Lock()
	}
	if b.broken {
		return Opening{}, nil, errDown
	}
	b.feeds[room] = append(b.feeds[room], f)
	o := Opening{Known: true, Likes: b.likes[room], Settings: b.settings[room].value, Revision: b.settings[room].revision, Acts: slices.Clone(b.acts[room])}
	for _, g := range b.ledger {
		if g.room == room {
			o.LastGift = g.Seq
		}
	}
	if b.blind {
		o = Opening{}
	}
	return o, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.feeds[room] = slices.DeleteFunc(b.feeds[room], func(other Feed) bool { return other == f })
		if len(b.feeds[room]) == 0 {
			delete(b.feeds, room)
		}
	}, nil
}

func (b *memoryBus) each(room string, f func(Feed)) {
	if b.unheard {
		return
	}
	for _, feed := range b.feeds[room] {
		f(feed)
	}
}

func (b *memoryBus) Publish(c protocol.Class, room string, message []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return errDown
	}
	if c == protocol.ClassDanmaku {
		b.recent[room] = append(b.recent[room], message)
	}
	b.each(room, func(f Feed) { f.Message(c, message) })
	return nil
}

func (b *memoryBus) StoreGift(_ context.Context, room, user, id string, event []byte, within time.Duration, done func(protocol.Receipt, error)) {
	b.mu.Lock()
	b.lined = append(b.lined, id)
	waits := b.gate != nil
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	store := func() {
		defer cancel()
		done(b.storeGift(ctx, room, user, id, event))
	}
	if waits {
		go store()
		return
	}
	store()
}

func (b *memoryBus) Late() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.late
}

func (b *memoryBus) storeGift(ctx context.Context, room, user, id string, event []byte) (protocol.Receipt, error) {
	b.mu.Lock()
	gate := b.gate
	b.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return protocol.Receipt{}, ctx.Err()
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stores++
	if b.down {
		return protocol.Receipt{}, fmt.Errorf("%w: %w", ErrRefused, errDown)
	}
	key := room + "/" + user + "/" + id
	if seq, ok := b.ids[key]; ok {
		return protocol.Receipt{Seq: seq, Duplicate: true}, nil
	}
	g := protocol.StoredGift{Seq: uint64(len(b.ledger) + 1), Event: event, Time: time.Now()}
	for _, old := range b.ledger {
		if old.room == room {
			g.Prev = old.Seq
		}
	}
	b.ledger = append(b.ledger, ledgerEntry{room, g})
	b.ids[key] = g.Seq
	b.each(room, func(f Feed) { f.Gift(g) })
	if b.mute {
		return protocol.Receipt{}, context.DeadlineExceeded
	}
	return protocol.Receipt{Seq: g.Seq}, nil
}

func (b *memoryBus) Gifts(_ context.Context, room string, after uint64, limit int) ([]protocol.StoredGift, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return nil, errDown
	}
	var out []protocol.StoredGift
	for _, g := range b.ledger {
		if g.room == room && g.Seq > after && len(out) < limit {
			out = append(out, g.StoredGift)
		}
	}
	return out, nil
}

func (b *memoryBus) Gift(_ context.Context, room string, seq uint64) (protocol.StoredGift, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range b.ledger {
		if g.room == room && g.Seq == seq {
			return g.StoredGift, nil
		}
	}
	return protocol.StoredGift{}, errors.New("no such gift")
}

func (b *memoryBus) GiftsEnd(_ context.Context, room string) (last uint64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return 0, errDown
	}
	for _, g := range b.ledger {
		if g.room == room {
			last = g.Seq
		}
	}
	return last, nil
}

func (b *memoryBus) LedgerID() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ledgerID
}

// Erase implements [Eraser].
func (b *memoryBus) Erase(_ context.Context, e Erasure) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return errDown
	}
	b.erasures = append(b.erasures, e)
	if e.Room == "" && e.MID == "" {
		b.erased.Store(e.User, e.Until)
	}
	return nil
}

// ErasedUntil implements [Eraser].
func (b *memoryBus) ErasedUntil(user string) int64 {
	until, _ := b.erased.Load(user)
	at, _ := until.(int64)
	return at
}

func (b *memoryBus) Recent(_ context.Context, room string, limit int) ([][]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.recent[room]
	return slices.Clone(all[max(0, len(all)-limit):]), nil
}

func (b *memoryBus) Show(_ context.Context, room string) ([]byte, uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return nil, 0, errDown
	}
	return b.shows[room].value, b.shows[room].revision, nil
}

func (b *memoryBus) PutShow(_ context.Context, room string, record []byte, revision uint64) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.down:
		return 0, errDown
	case b.shows[room].revision != revision:
		return 0, fmt.Errorf("%w: revision %d", ErrConflict, revision)
	}
	b.shows[room] = revised{record, revision + 1}
	return revision + 1, nil
}

func (b *memoryBus) AddLikes(room string, delta int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return errDown
	}
	b.likes[room] += delta
	b.each(room, func(f Feed) { f.Likes(b.likes[room]) })
	return nil
}

func (b *memoryBus) Settings(_ context.Context, room string) ([]byte, uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return nil, 0, errDown
	}
	return b.settings[room].value, b.settings[room].revision, nil
}

func (b *memoryBus) PutAct(_ context.Context, room string, value []byte, last uint64, alone bool) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.down:
		return 0, errDown
	case b.actless:
		return 0, ErrRefused
	case lastOf(b.acts[room]) != last:
		return 0, fmt.Errorf("%w: act %d", ErrConflict, last)
	}
	b.acted++
	a := protocol.StoredAct{Seq: b.acted, Value: value}
	if alone {
		b.acts[room] = nil
	}
	b.acts[room] = append(b.acts[room], a)
	b.each(room, func(f Feed) { f.Act(a) })
	return a.Seq, nil
}

func (b *memoryBus) ActsAfter(_ context.Context, room string, after uint64) ([]protocol.StoredAct, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return nil, errDown
	}
	return slices.DeleteFunc(slices.Clone(b.acts[room]), func(a protocol.StoredAct) bool { return a.Seq <= after }), nil
}

func (b *memoryBus) PutSettings(_ context.Context, room string, value []byte, revision uint64) (uint64, error) {
	b.mu.Lock()
	if f := b.storing; f != nil {
		b.mu.Unlock()
		f()
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	switch {
	case b.down:
		return 0, errDown
	case b.settings[room].revision != revision:
		return 0, fmt.Errorf("%w: revision %d", ErrConflict, revision)
	}
	b.settings[room] = revised{value, revision + 1}
	b.each(room, func(f Feed) { f.Settings(value, revision+1) })
	return revision + 1, nil
}
