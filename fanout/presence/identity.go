package presence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"liveroom/fanout/link"
)

var (
	// ErrNodeTaken says that another node that lives has this node's id.
	ErrNodeTaken = errors.New("fanout: node id is in use")
	// ErrNotShared says that of several nodes one has no quota store shared with the others, see [Config.Shared].
	ErrNotShared = errors.New("fanout: several nodes need a shared quota store")
)

// identity is what nodes must know of each other to live together.
type identity struct {
	Node        string `json:"node"`
	Incarnation uint64 `json:"inc"` // of all starts of all nodes, in their order
	Up          int64  `json:"up"`  // milliseconds since then, on its own clock
	Shared      bool   `json:"shared,omitempty"`
	// Peers are the nodes that it knows, in an answer to who asks at its start.
	Peers []string `json:"peers,omitempty"`
}

func (p *Presence) identity() identity {
	return identity{Node: p.cfg.NodeID, Incarnation: p.cfg.Incarnation, Up: time.Since(p.began).Milliseconds(), Shared: p.cfg.Shared}
}

// whoWait is how long a starting node waits for a node that it was told of, and that may be dead or paused.
const whoWait = 400 * time.Millisecond

// Meet asks who is there, before this node says that it is. Where nobody is, NATS says so at once. Two nodes that start
// at the same moment do not see each other here; they do as soon as they announce themselves, see judge.
func (p *Presence) Meet(ctx context.Context) error {
	inbox := p.link.Live.NewInbox()
	answers := make(chan *nats.Msg, 256)
	sub, err := p.link.Live.ChanSubscribe(inbox, answers)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection, where there is nothing to undo
	if err := p.link.Live.PublishRequest(link.WhoSubject, inbox, nil); err != nil {
		return err
	}
	named, answered := map[string]bool{}, map[string]bool{}
	for {
		select {
		case m := <-answers:
			var who identity
			if err := json.Unmarshal(m.Data, &who); err != nil {
				return nil // nobody: there is no responder
			}
			p.judge(who)
			answered[who.Node] = true
			p.mu.Lock()
			p.met = append(p.met, who.Node)
			p.mu.Unlock()
			for _, name := range append(who.Peers, who.Node) {
				named[name] = true
			}
		case <-time.After(whoWait):
			return p.Conflict()
		case <-ctx.Done():
			return ctx.Err()
		}
		missing := 0
		for name := range named {
			if !answered[name] {
				missing++
			}
		}
		if missing == 0 || p.Conflict() != nil {
			return p.Conflict()
		}
	}
}

// sayWho answers a node that starts, and lets it know the rooms at once.
func (p *Presence) sayWho(m *nats.Msg) {
	if m.Reply == "" || p.Conflict() != nil {
		return
	}
	own := p.identity()
	own.Peers = p.Nodes()
	if time.Since(p.began) < p.cfg.NodeTimeout { // and may not have heard all of them announce themselves yet
		p.mu.Lock()
		own.Peers = append(own.Peers, p.met...)
		p.mu.Unlock()
	}
	body, err := json.Marshal(own)
	if err == nil {
		err = m.Respond(body)
	}
	if err != nil {
		p.link.Log.Debug("a starting node is not answered", "err", err)
	}
	p.sayWhole(nil)
}

// judge finds out whether this node may live beside another one, and else which of the two ends. That is the one that
// started later, while it is young: it has been let in by nobody. When it is not, the earlier one was silent (paused, cut
// off) while the later one was let in for it, and ends. All nodes come to the same conclusion by themselves.
func (p *Presence) judge(other identity) {
	if other.Incarnation == p.cfg.Incarnation {
		return // itself
	}
	var reason error
	switch {
	case other.Node == p.cfg.NodeID:
		reason = fmt.Errorf("%w: another %s runs, for %v now", ErrNodeTaken, other.Node, time.Duration(other.Up)*time.Millisecond)
	case !other.Shared && !p.cfg.Shared:
		reason = fmt.Errorf("%w: this node and %s have none, and each would grant the whole of every quota", ErrNotShared, other.Node)
	case !p.cfg.Shared:
		reason = fmt.Errorf("%w: %s has one, and this node has none", ErrNotShared, other.Node)
	case !other.Shared:
		reason = fmt.Errorf("%w: this node has one, and %s has none", ErrNotShared, other.Node)
	default:
		return
	}
	timeout := p.cfg.NodeTimeout
	if p.cfg.Incarnation > other.Incarnation {
		if time.Since(p.began) < timeout {
			p.end(reason)
		}
		return
	}
	// Twice, so that in the moment between not both of them end.
	if time.Duration(other.Up)*time.Millisecond >= 2*timeout {
		p.end(fmt.Errorf("%w; this node was not heard for a while", reason))
	}
}

// end keeps the first reason.
func (p *Presence) end(reason error) {
	if p.conflict.CompareAndSwap(nil, &reason) {
		p.link.Log.Error("this node must end", "err", reason)
		close(p.ended)
		p.soon.Soon() // to say goodbye
	}
}

// Ended is closed when this node found that it must not run beside another one; [Presence.Conflict] tells why. It serves
// until it is closed, and its owner should do that now.
func (p *Presence) Ended() <-chan struct{} { return p.ended }

// Conflict returns why this node must end: [ErrNodeTaken] or [ErrNotShared], nil as long as it need not.
func (p *Presence) Conflict() error {
	if reason := p.conflict.Load(); reason != nil {
		return *reason
	}
	return nil
}
