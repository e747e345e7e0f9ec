package node

import (
	"context"
	"time"

	"github.com/cespare/xxhash/v2"

	"liveroom/internal/token"
	"liveroom/protocol"
	"liveroom/room"
)

// proofOf is what a session keeps of its token's ID. Two IDs alike in 64 bits would be cut together; an ID is no secret
// and nothing is granted by it.
func proofOf(id string) uint64 { return xxhash.Sum64String(id) }

// learnRevoked makes the authority refuse what was revoked on any node, ever since.
func (n *Node) learnRevoked(ctx context.Context) (err error) {
	n.unlearn, err = n.fabric.FollowRevoked(ctx, func(name string, at time.Time, known bool) {
		if n.revoked.Add(name, at) && !known {
			n.cut(name)
		}
	})
	return err
}

// cut closes this node's sessions that go by the name.
func (n *Node) cut(name string) {
	match := func(who *room.Identity) bool { return token.UserName(who.User) == name }
	if id, ok := token.IDOf(name); ok {
		proof := proofOf(id)
		match = func(who *room.Identity) bool { return who.Proof == proof }
	}
	if cut := n.hub.Cut(match, protocol.Refusal{Code: protocol.CloseToken, Detail: token.ErrRevoked.Error()}); cut > 0 {
		n.log.Info("cut what was revoked", "sessions", cut)
	}
}
