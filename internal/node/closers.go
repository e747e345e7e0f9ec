package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// closeTimeout bounds what follows the drain: requests under way, likes, the store.
	closeTimeout = 10 * time.Second
	// partTimeout is how long after the last close frame a client may take to answer it.
	partTimeout = 5 * time.Second
	// hurryTimeout is what each closer has left once somebody is in a hurry: enough to hand over what is in hand.
	hurryTimeout = time.Second
)

// closers take down what was made: the last first. Whoever makes a part adds its closer, before or right after; it is the one
// way in which a node ends, whether it ran, failed to start or is told to hurry.
type closers []closer

type closer struct {
	what string
	most time.Duration // 0: it waits for nothing
	end  func(context.Context) error
}

func (all *closers) add(what string, most time.Duration, end func(context.Context) error) {
	*all = append(*all, closer{what, most, end})
}

// run ends everything. When hurry ends, the closer under way is told so, and those after it have little time.
func (all *closers) run(hurry context.Context) error {
	var faults []error
	for _, c := range slices.Backward(*all) {
		if err := c.run(hurry); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", c.what, err))
		}
	}
	*all = nil
	return errors.Join(faults...)
}

func (c closer) run(hurry context.Context) error {
	most, hurried := c.most, hurry.Err() != nil
	if hurried {
		most = min(most, hurryTimeout)
	}
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	if !hurried {
		defer context.AfterFunc(hurry, cancel)()
	}
	return c.end(ctx)
}

// runs starts a goroutine, which is told to end and waited for in its turn.
func (n *Node) runs(what string, f func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	n.closers.add("end "+what, 0, func(context.Context) error { stop(); running.Wait(); return nil })
}

// every calls f now and then, in a goroutine of its own.
func (n *Node) every(what string, period time.Duration, f func(context.Context)) {
	n.runs(what, func(ctx context.Context) {
		tick := time.NewTicker(period)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
}

// Run returns once the node is down: after ctx ended, a server ended by itself, or this node may not run beside another. It
// takes it down so that nobody loses anything: not ready any more, and after the delay, in which balancers find that out, every
// client sent away with a time to come back, while pages and API are served; then no new connections, likes stored, the store closed. The admin listener goes last, so that this can be watched. The end of hurry cuts
// short what only is polite: clients are cut off.
func (n *Node) Run(ctx, hurry context.Context) error {
	failed := n.wait(ctx)
	n.health.draining.Store(true)
	if failed == nil && n.cfg.DrainDelay > 0 {
		select {
		case <-time.After(n.cfg.DrainDelay):
		case <-hurry.Done():
		}
	}
	err := n.closers.run(hurry)
	n.log.Info("stopped", "err", err)
	if failed != nil {
		return failed
	}
	return err
}

// wait returns when ctx ends, or with why a server ended by itself, or why this node must not run beside another.
func (n *Node) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		n.log.Info("draining", "over", n.cfg.DrainTimeout.String(), "after", n.cfg.DrainDelay.String())
		return nil
	case <-n.fabric.Presence.Ended():
		return n.fabric.Presence.Conflict() // drained all the same: its viewers find another node
	case err := <-n.failed:
		return err
	}
}

// leave sends everybody away over the drain window, and then ends requests: whoever comes meanwhile gets pages and answers, and a
// socket the time to come back. A connection is good for one request from here on, so that the next goes to another node.
func (n *Node) leave(ctx context.Context) error {
	n.viewers.SetKeepAlivesEnabled(false)
	sent, cancel := context.WithTimeout(ctx, n.cfg.DrainTimeout+partTimeout)
	defer cancel()
	err := n.acceptor.Shutdown(sent, n.cfg.DrainTimeout)
	n.endRequests(ctx)
	return err
}

// ending ends when the main listener or the operators' begins to, and with it the answers that wait for something to come.
func (n *Node) ending() context.Context {
	ctx, end := context.WithCancel(context.Background())
	n.viewers.RegisterOnShutdown(end)
	n.operators.RegisterOnShutdown(end)
	n.closers.add("end answers that wait", 0, func(context.Context) error { end(); return nil })
	return ctx
}

// endRequests closes the main listener and lets the requests under way end. What is still there after closeTimeout, such as
// a connection on which nothing was ever asked, is cut: that is the client's fault and no failure of the drain.
func (n *Node) endRequests(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	if err := n.viewers.Shutdown(ctx); err != nil {
		n.log.Info("cut the requests that did not end", "err", errors.Join(err, n.viewers.Close()))
	}
}
