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

// announcement is a node's presence, cut into parts when it has many rooms.
type announcement struct {
	Node        string `json:"node"`
	Incarnation uint64 `json:"inc"`
	Snapshot    uint64 `json:"snap"` // grows within an incarnation
	Part        int    `json:"part"`
	Parts       int    `json:"parts"`
	Goodbye     bool   `json:"bye,omitempty"`
	// Rooms: members, last gift, settings revision, like total.
	Rooms map[string]announced `json:"rooms,omitempty"`
}

type announced [4]int64

func (a announced) online() int { return int(a[0]) }
func (a announced) seen() seen  { return seen{uint64(a[1]), uint64(a[2]), a[3]} }

// announceRooms bounds one part well below NATS' megabyte: 4096 rooms of at most 64 + 85 bytes.
const announceRooms = 4096

// Announce sets where presence takes this node's rooms from, every [Config.AnnounceEvery]. Until it is called, the
// node announces itself without rooms.
func (f *Fabric) Announce(rooms RoomCounts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rooms = rooms
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

func (f *Fabric) announceLoop(ctx context.Context) {
	tick := time.NewTicker(f.cfg.AnnounceEvery)
	defer tick.Stop()
	for snapshot := uint64(1); ; snapshot++ {
		if err := f.announce(snapshot); err != nil {
			f.log.Debug("presence not announced", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (f *Fabric) announce(snapshot uint64) error {
	parts := []map[string]announced{{}}
	for room, online := range f.localRooms() {
		part := parts[len(parts)-1]
		if len(part) == announceRooms {
			part = map[string]announced{}
			parts = append(parts, part)
		}
		v := f.seenOf(room)
		part[room] = announced{int64(online), int64(v.gift), int64(v.revision), v.likes}
	}
	for i, rooms := range parts {
		err := f.sendPresence(announcement{
			Node: f.cfg.NodeID, Incarnation: f.incarnation, Snapshot: snapshot, Part: i, Parts: len(parts), Rooms: rooms,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// goodbye takes this node's counts away from the others at once.
func (f *Fabric) goodbye(ctx context.Context) error {
	if !f.live.IsConnected() {
		return nil // they will notice
	}
	if err := f.sendPresence(announcement{Node: f.cfg.NodeID, Incarnation: f.incarnation, Goodbye: true}); err != nil {
		return err
	}
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	if err := f.live.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("say goodbye: %w", err)
	}
	return nil
}

func (f *Fabric) sendPresence(a announcement) error {
	body, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("announce presence: %w", err)
	}
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

// hear takes another node's presence: its counts, and whether it has seen more of a room than this node.
func (f *Fabric) hear(m *nats.Msg) {
	var a announcement
	if err := json.Unmarshal(m.Data, &a); err != nil || a.Node == f.cfg.NodeID {
		return
	}
	f.roster.hear(a, time.Now())
	for room, v := range a.Rooms {
		f.mu.Lock()
		s := f.subs[room]
		f.mu.Unlock()
		if s != nil && s.behind(v.seen()) {
			f.say(room, v.seen())
		}
	}
}

// nodeKey is the node's key in the bucket that numbers starts.
func nodeKey(node string) string { return protocol.Token(node) }
