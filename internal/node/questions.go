package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"liveroom/fanout"
	"liveroom/fanout/question"
	"liveroom/internal/api"
	"liveroom/internal/preview"
	"liveroom/limit/cluster"
)

// verbTraffic asks another node for what its recorder knows of a time, by the clock of the one that asks.
const verbTraffic = "traffic"

// gatherPatience bounds the wait for other nodes. A node that says nothing is left out.
const gatherPatience = 2 * time.Second

var errNoTime = errors.New("want two instants, and that of asking")

// tellTraffic answers other nodes with this one's recording.
func (n *Node) tellTraffic(_ context.Context, _ string, payload []byte) ([]byte, error) {
	if len(payload) == 2*8 { // of an older node, which takes all clocks for one
		payload = binary.BigEndian.AppendUint64(payload, uint64(n.recorder.Now().UnixNano()))
	}
	if len(payload) != 3*8 {
		return nil, errNoTime
	}
	at := func(i int) time.Time { return time.Unix(0, int64(binary.BigEndian.Uint64(payload[8*i:]))) }
	return n.recorder.BetweenAt(at(0), at(1), at(2)).MarshalBinary()
}

// traffic is a [preview.Source] over all nodes, as far as they answer; this one always does.
func (n *Node) traffic(ctx context.Context, from, to time.Time) (*preview.Recording, error) {
	all := []*preview.Recording{n.recorder.Between(from, to)}
	var span []byte
	for _, at := range []time.Time{from, to, n.recorder.Now()} {
		span = binary.BigEndian.AppendUint64(span, uint64(at.UnixNano()))
	}
	others := n.others(ctx, verbTraffic, span)
	for _, name := range slices.Sorted(maps.Keys(others)) {
		r, err := preview.Decode(others[name])
		if err != nil {
			n.log.Warn("another node's traffic can't be read", "node", name, "err", err)
			continue
		}
		all = append(all, r)
	}
	return preview.Merge(all...), nil
}

// others asks every other node, and returns what answered in time.
func (n *Node) others(ctx context.Context, verb string, payload []byte) map[string][]byte {
	if n.fabric.Presence.NodeCount() < 2 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, gatherPatience)
	defer cancel()
	answers, err := n.fabric.Questions.AskOthers(ctx, verb, payload)
	if err != nil {
		n.log.Warn("not all nodes answer", "verb", verb, "err", err)
	}
	return answers
}

// askNodes is the API's way to the other nodes.
func (n *Node) askNodes(ctx context.Context, question api.Question, about string) [][]byte {
	return slices.Collect(maps.Values(n.others(ctx, apiVerbs[question], []byte(about))))
}

var apiVerbs = [...]string{api.AskRooms: "rooms", api.AskRoom: "room", api.AskTraffic: "recent", api.AskPerson: "person", api.AskPeople: "people"}

// answerNodes answers what the other nodes ask.
func (n *Node) answerNodes(calls *api.API) error {
	err := n.fabric.Questions.Answer(verbTraffic, n.tellTraffic)
	for question, verb := range apiVerbs {
		err = errors.Join(err, n.fabric.Questions.Answer(verb, func(_ context.Context, _ string, about []byte) ([]byte, error) {
			return calls.Tell(api.Question(question), string(about))
		}))
	}
	return err
}

// verbCast brings a node an event for all rooms.
const verbCast = "cast"

// hear takes an event for all rooms.
func (n *Node) hear(_ context.Context, _ string, message []byte) ([]byte, error) {
	return nil, n.hub.Heard(message)
}

// everywhere brings an event to every node, and returns nil once all that there are have it.
func (n *Node) everywhere(ctx context.Context, message []byte) error {
	if err := n.hub.Heard(message); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, gatherPatience)
	defer cancel()
	_, err := n.fabric.Questions.AskOthers(ctx, verbCast, message)
	all, several := err.(interface{ Unwrap() []error })
	if !several {
		return busError(err)
	}
	there := slices.DeleteFunc(all.Unwrap(), func(err error) bool { return errors.Is(err, question.ErrNoNode) }) // it has gone, or is of before
	return busError(errors.Join(there...))
}

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

var _ cluster.Peers = peers{}

// Count implements [cluster.Peers].
func (p peers) Count() int { return p.fabric.Presence.NodeCount() }

// Reachable implements [cluster.Peers].
func (p peers) Reachable() bool { return p.fabric.Link.Healthy() }

// Recall implements [cluster.Peers].
func (p peers) Recall(ctx context.Context, node, claim string) error {
	answer, err := p.fabric.Questions.Ask(ctx, node, verbRecall, []byte(claim))
	switch {
	case errors.Is(err, question.ErrNoNode):
		return cluster.ErrNoNode
	case err != nil:
		return err
	}
	switch string(answer) {
	case recallGiven:
		return nil
	case recallUnknown:
		return cluster.ErrUnknownKey
	case recallGone:
		return cluster.ErrNoNode
	}
	return fmt.Errorf("node %s answered %.20q to a recall", node, answer)
}

// recalled answers a peer's Recall.
func recalled(c *cluster.Cluster) question.Answerer {
	return func(ctx context.Context, _ string, claim []byte) ([]byte, error) {
		switch err := c.Recalled(ctx, string(claim)); {
		case err == nil:
			return []byte(recallGiven), nil
		case errors.Is(err, cluster.ErrUnknownKey):
			return []byte(recallUnknown), nil
		case errors.Is(err, cluster.ErrNoNode):
			return []byte(recallGone), nil
		default:
			return nil, err
		}
	}
}
