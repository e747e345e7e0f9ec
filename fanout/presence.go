package fanout

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go"

	"liveroom/protocol"
)

// RoomCounts yields each room that has members on this node with their number.
type RoomCounts func() iter.Seq2[string, int]

// announcement is what a node says of itself with each beat: whole every wholeBeats-th time and when somebody asked, and
// between them what has changed since the beat before. It is cut into parts when it is long.
type announcement struct {
	identity
	Beat    uint64 `json:"beat"` // grows by one within an incarnation
	Whole   bool   `json:"whole,omitempty"`
	Part    int    `json:"part"`
	Parts   int    `json:"parts"`
	Goodbye bool   `json:"bye,omitempty"`
	// Rooms: members (0: no more), last gift, settings revision, like total.
	Rooms map[string]announced `json:"rooms,omitempty"`
}

type announced [4]int64

func (a announced) online() int { return int(a[0]) }
func (a announced) seen() seen  { return seen{uint64(a[1]), uint64(a[2]), a[3]} }

const (
	// announceRooms bounds one part well below NATS' megabyte: 4096 rooms of at most 64 + 85 bytes.
	announceRooms = 4096
	// wholeBeats is how seldom a node says everything without being asked. Who has missed something asks.
	wholeBeats = 15
)

// Announce sets where presence takes this node's rooms from, every [Config.AnnounceEvery]. Until it is called, the
// node announces itself without rooms.
func (f *Fabric) Announce(rooms RoomCounts) {
	f.mu.Lock()
	f.rooms = rooms
	f.mu.Unlock()
	f.announceSoon.soon()
}

// Online returns the number of the room's members on the other nodes.
func (f *Fabric) Online(room string) int { return f.roster.online(room, time.Now()) }

// Rooms returns the rooms of the other nodes with the number of their members there.
func (f *Fabric) Rooms() map[string]int { return f.roster.rooms(time.Now()) }

// Nodes returns the other nodes that were heard within [Config.NodeTimeout], by name.
func (f *Fabric) Nodes() []string { return f.roster.names(time.Now()) }

// NodeCount returns how many nodes are alive, this one included. It costs one load. While this node does not hear well
// itself, and for [Config.NodeTimeout] after that, the number falls by goodbyes only: what it is for is to share out
// something among the nodes, and who is cut off must not take the shares of those it does not hear.
func (f *Fabric) NodeCount() int { return int(f.roster.count.Load()) }

// beats is the announcing loop's own memory.
type beats struct {
	beat uint64
	said map[string]announced // what the others know if they missed nothing; nil: they know nothing
	left bool                 // goodbye was said
}

func (f *Fabric) announceLoop(ctx context.Context) {
	var b beats
	beat := func(ctx context.Context) {
		if f.Conflict() != nil { // the other one is the node
			if !b.left {
				b.left = f.goodbye(ctx) == nil
			}
			return
		}
		if err := f.announce(&b); err != nil {
			b.said = nil // nobody knows what arrived
			f.log.Debug("presence not announced", "err", err)
		}
	}
	beat(ctx)
	every(ctx, f.cfg.AnnounceEvery, f.announceSoon, beat)
}

func (f *Fabric) announce(b *beats) error {
	b.beat++
	whole := f.wanted.Swap(false) || b.said == nil || b.beat%wholeBeats == 0
	now := make(map[string]announced, len(b.said))
	for room, online := range f.localRooms() {
		v := f.seenOf(room)
		now[room] = announced{int64(online), int64(v.gift), int64(v.revision), v.likes}
	}
	parts := cutParts(now, b.said, whole)
	for i, rooms := range parts {
		a := announcement{identity: f.identity(), Beat: b.beat, Whole: whole, Part: i, Parts: len(parts), Rooms: rooms}
		if err := f.sendPresence(a); err != nil {
			return err
		}
	}
	b.said = now
	return nil
}

// cutParts returns what is to be said, at least one part.
func cutParts(now, said map[string]announced, whole bool) []map[string]announced {
	parts := []map[string]announced{{}}
	say := func(room string, v announced) {
		last := parts[len(parts)-1]
		if len(last) == announceRooms {
			last = map[string]announced{}
			parts = append(parts, last)
		}
		last[room] = v
	}
	for room, v := range now {
		if old, ok := said[room]; whole || !ok || old != v {
			say(room, v)
		}
	}
	if !whole {
		for room := range said {
			if _, ok := now[room]; !ok {
				say(room, announced{})
			}
		}
	}
	return parts
}

// goodbye takes this node's counts away from the others at once.
func (f *Fabric) goodbye(ctx context.Context) error {
	if !f.live.IsConnected() {
		return nil // they will notice
	}
	if err := f.sendPresence(announcement{identity: f.identity(), Goodbye: true}); err != nil {
		return err
	}
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	if err := f.live.FlushWithContext(ctx); err != nil && f.live.IsConnected() { // else they will notice
		return fmt.Errorf("say goodbye: %w", err)
	}
	return nil
}

func (f *Fabric) sendPresence(a announcement) error {
	body, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("announce presence: %w", err)
	}
	f.metrics.presence.Add(float64(len(body)))
	return f.publish(presenceSubject(f.cfg.NodeID), body)
}

func (f *Fabric) localRooms() iter.Seq2[string, int] {
	f.mu.Lock()
	rooms := f.rooms
	f.mu.Unlock()
	if rooms == nil {
		return func(func(string, int) bool) {}
	}
	return rooms()
}

func (f *Fabric) seenOf(room string) seen {
	f.mu.Lock()
	s := f.subs[room]
	f.mu.Unlock()
	if s == nil {
		return seen{}
	}
	return s.seen()
}

// hear takes another node's presence: who it is, its counts, and whether it has seen more of a room than this node.
func (f *Fabric) hear(m *nats.Msg) {
	var a announcement
	if err := json.Unmarshal(m.Data, &a); err != nil || a.Node == "" {
		return
	}
	if !a.Goodbye {
		f.judge(a.identity)
	}
	if a.Node == f.cfg.NodeID {
		if a.Incarnation == f.incarnation {
			f.presence.heard()
		}
		return
	}
	if f.roster.hear(a, time.Now()) {
		_ = f.publish(wholeSubject(a.Node), nil) // lost when disconnected: asked for again
	}
	for room, v := range a.Rooms {
		f.mu.Lock()
		s := f.subs[room]
		f.mu.Unlock()
		if s != nil && s.behind(v.seen()) {
			f.say(room, v.seen())
		}
	}
}

// sayWhole is for whoever has missed something.
func (f *Fabric) sayWhole(*nats.Msg) {
	f.wanted.Store(true)
	f.announceSoon.soon()
}

// nodeKey is the node's key in the bucket that numbers starts.
func nodeKey(node string) string { return protocol.Token(node) }
