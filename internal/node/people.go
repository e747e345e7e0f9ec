package node

import (
	"iter"

	"liveroom/fanout/presence"
	"liveroom/room"
	"liveroom/room/people"
)

// audiences yields the rooms of this node for the others to count.
func (n *Node) audiences() iter.Seq2[string, presence.Crowd] {
	return func(yield func(string, presence.Crowd) bool) {
		for _, r := range n.hub.Rooms() {
			if r.Here > 0 && !yield(r.ID, presence.Crowd{Sessions: r.Here, People: r.PeopleHere}) {
				return
			}
		}
	}
}

// samples let presence tell who is in this node's rooms.
type samples struct{ hub *room.Hub }

var _ presence.Samples = samples{}

// Version implements [presence.Samples].
func (s samples) Version(id string) uint64 {
	if r, ok := s.hub.Room(id); ok {
		return r.Census().Version()
	}
	return 0
}

// Sample implements [presence.Samples].
func (s samples) Sample(id string) []byte {
	if r, ok := s.hub.Room(id); ok {
		return r.Census().Crowd().AppendBinary(nil)
	}
	return nil
}

// elsewhere is who a room has on other nodes.
func (n *Node) elsewhere(id string) room.Others {
	all, version := n.fabric.Presence.Elsewhere(id)
	if len(all) == 0 {
		return room.Others{}
	}
	out := room.Others{Version: version, People: func() []people.Crowd {
		crowds := make([]people.Crowd, len(all))
		for i, there := range all {
			crowds[i], _ = people.ParseCrowd(there.Sample) // of a node that has told none, or of another kind: its number alone
			crowds[i].People = there.People
		}
		return crowds
	}}
	for _, there := range all {
		out.Sessions += there.Sessions
		out.Guess = out.Guess || there.Sample == nil
	}
	return out
}
