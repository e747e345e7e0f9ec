package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
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
	// Peers are the nodes that it knows, in an answer to whoSubject.
	Peers []string `json:"peers,omitempty"`
}

func (f *Fabric) identity() identity {
	return identity{Node: f.cfg.NodeID, Incarnation: f.incarnation, Up: time.Since(f.began).Milliseconds(), Shared: f.cfg.Shared}
}

// whoWait is how long a starting node waits for a node that it was told of, and that may be dead or paused.
const whoWait = 400 * time.Millisecond

// meet asks who is there, before this node says that it is. Where nobody is, NATS says so at once. Two nodes that start
// at the same moment do not see each other here; they do as soon as they announce themselves, see judge.
func (f *Fabric) meet(ctx context.Context) error {
	inbox := f.live.NewInbox()
	answers := make(chan *nats.Msg, 256)
	sub, err := f.live.ChanSubscribe(inbox, answers)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection, where there is nothing to undo
	if err := f.live.PublishRequest(whoSubject, inbox, nil); err != nil {
		return err
	}
	named, answered := map[string]bool{}, map[string]bool{}
	for {
		select {
		case m := <-answers:
			var p identity
			if err := json.Unmarshal(m.Data, &p); err != nil {
				return nil // nobody: there is no responder
			}
			f.judge(p)
			answered[p.Node] = true
			f.met = append(f.met, p.Node)
			for _, name := range append(p.Peers, p.Node) {
				named[name] = true
			}
		case <-time.After(whoWait):
			return f.Conflict()
		case <-ctx.Done():
			return ctx.Err()
		}
		missing := 0
		for name := range named {
			if !answered[name] {
				missing++
			}
		}
		if missing == 0 || f.Conflict() != nil {
			return f.Conflict()
		}
	}
}

// sayWho answers a node that starts, and lets it know the rooms at once.
func (f *Fabric) sayWho(m *nats.Msg) {
	if m.Reply == "" || f.Conflict() != nil {
		return
	}
	own := f.identity()
	own.Peers = f.Nodes()
	if time.Since(f.began) < f.cfg.NodeTimeout { // and may not have heard all of them announce themselves yet
		own.Peers = append(own.Peers, f.met...)
	}
	body, err := json.Marshal(own)
	if err == nil {
		err = m.Respond(body)
	}
	if err != nil {
		f.log.Debug("a starting node is not answered", "err", err)
	}
	f.sayWhole(nil)
}

// judge finds out whether this node may live beside another one, and else which of the two ends. That is the one that
// started later, while it is young: it has been let in by nobody. When it is not, the earlier one was silent (paused, cut
// off) while the later one was let in for it, and ends. All nodes come to the same conclusion by themselves.
func (f *Fabric) judge(other identity) {
	if other.Incarnation == f.incarnation {
		return // itself
	}
	var reason error
	switch {
	case other.Node == f.cfg.NodeID:
		reason = fmt.Errorf("%w: another %s runs, for %v now", ErrNodeTaken, other.Node, time.Duration(other.Up)*time.Millisecond)
	case !other.Shared && !f.cfg.Shared:
		reason = fmt.Errorf("%w: this node and %s have none, and each would grant the whole of every quota", ErrNotShared, other.Node)
	case !f.cfg.Shared:
		reason = fmt.Errorf("%w: %s has one, and this node has none", ErrNotShared, other.Node)
	case !other.Shared:
		reason = fmt.Errorf("%w: this node has one, and %s has none", ErrNotShared, other.Node)
	default:
		return
	}
	timeout := f.cfg.NodeTimeout
	if f.incarnation > other.Incarnation {
		if time.Since(f.began) < timeout {
			f.end(reason)
		}
		return
	}
	// Twice, so that in the moment between not both of them end.
	if time.Duration(other.Up)*time.Millisecond >= 2*timeout {
		f.end(fmt.Errorf("%w; this node was not heard for a while", reason))
	}
}

// end keeps the first reason.
func (f *Fabric) end(reason error) {
	if f.conflict.CompareAndSwap(nil, &reason) {
		f.log.Error("this node must end", "err", reason)
		close(f.ended)
		f.announceSoon.soon() // to say goodbye
	}
}

// Ended is closed when this node found that it must not run beside another one; [Fabric.Conflict] tells why. It serves
// until it is closed, and its owner should do that now.
func (f *Fabric) Ended() <-chan struct{} { return f.ended }

// Conflict returns why this node must end: [ErrNodeTaken] or [ErrNotShared], nil as long as it need not.
func (f *Fabric) Conflict() error {
	if reason := f.conflict.Load(); reason != nil {
		return *reason
	}
	return nil
}
