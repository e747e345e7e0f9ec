package model

import (
	"context"
	"time"

	"liveroom/limit/cluster"
)

// peers is what a node knows of the others over NATS.
type peers struct{ node *Node }

var _ cluster.Peers = peers{}

// Presence: a silent node counts for this long, and a node that hears nothing
// of itself for that long knows that it is cut off.
const (
	presenceGone = 6 * time.Second
	unheard      = 3 * time.Second
	hop          = time.Millisecond
)

// Count is the number of nodes that presence shows.
func (p peers) Count() int {
	count := 0
	for _, n := range p.node.world.nodesNow() {
		n.mu.Lock()
		silent := n.state == nodeDead || n.state == nodePaused
		if n.state != nodeLeft && (!silent || time.Since(n.since) < presenceGone) {
			count++
		}
		n.mu.Unlock()
	}
	return max(count, 1)
}

// Reachable is false from unheard after a pause began until a moment after it ended.
func (p peers) Reachable() bool {
	p.node.mu.Lock()
	defer p.node.mu.Unlock()
	return p.node.state != nodePaused || time.Since(p.node.since) < unheard
}

// Recall asks the node of that name for a claimed key.
func (p peers) Recall(ctx context.Context, node, key string) error {
	p.node.awake()
	time.Sleep(hop)
	n := p.node.world.byName(node)
	if n == nil {
		return cluster.ErrNoNode
	}
	n.mu.Lock()
	state, since, resumed := n.state, n.since, n.resumed
	n.mu.Unlock()
	switch state {
	case nodeLeft:
		return cluster.ErrNoNode
	case nodeDead:
		if time.Since(since) >= presenceGone {
			return cluster.ErrNoNode
		}
		<-ctx.Done()
		return ctx.Err()
	case nodePaused:
		select {
		case <-resumed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return n.quota.(*leased).cluster.Recalled(ctx, key)
}
