package node

import (
	"context"
	"errors"
	"fmt"

	"liveroom/fanout"
	"liveroom/limit"
)

// verbRecall asks a node to give a user's bucket back that it has claimed.
const verbRecall = "recall"

// What a node answers to it.
const (
	recallGiven   = "given"
	recallUnknown = "unknown"
	recallGone    = "gone"
)

// peers is what the quotas know of the other nodes: over NATS, so that it does not fail together with Redis.
type peers struct{ fabric *fanout.Fabric }

var _ limit.Peers = peers{}

// Count implements [limit.Peers].
func (p peers) Count() int { return p.fabric.NodeCount() }

// Reachable implements [limit.Peers].
func (p peers) Reachable() bool { return p.fabric.Healthy() }

// Recall implements [limit.Peers].
func (p peers) Recall(ctx context.Context, node, claim string) error {
	answer, err := p.fabric.Ask(ctx, node, verbRecall, []byte(claim))
	switch {
	case errors.Is(err, fanout.ErrNoNode):
		return limit.ErrNoNode
	case err != nil:
		return err
	}
	switch string(answer) {
	case recallGiven:
		return nil
	case recallUnknown:
		return limit.ErrUnknownKey
	case recallGone:
		return limit.ErrNoNode
	}
	return fmt.Errorf("node %s answered %.20q to a recall", node, answer)
}

// recalled answers a peer's Recall.
func recalled(c *limit.Cluster) fanout.Answerer {
	return func(ctx context.Context, _ string, claim []byte) ([]byte, error) {
		switch err := c.Recalled(ctx, string(claim)); {
		case err == nil:
			return []byte(recallGiven), nil
		case errors.Is(err, limit.ErrUnknownKey):
			return []byte(recallUnknown), nil
		case errors.Is(err, limit.ErrNoNode):
			return []byte(recallGone), nil
		default:
			return nil, err
		}
	}
}
