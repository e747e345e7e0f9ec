package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// closeTimeout bounds what follows the drain: requests under way, likes, the store.
	closeTimeout = 10 * time.Second
	// partTimeout is how long after the last close frame a client may take to answer it.
	partTimeout = 5 * time.Second
)

// serveOn serves one listener until the server is shut down.
func (n *Node) serveOn(s *http.Server, ln net.Listener, overTLS bool) {
	n.running.Go(func() {
		var err error
		if overTLS {
			err = s.ServeTLS(ln, "", "")
		} else {
			err = s.Serve(ln)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			n.failed <- fmt.Errorf("serve %s: %w", ln.Addr(), err)
		}
	})
}

// Wait returns when ctx ends, or with why a server ended by itself, or why this node must not run beside another.
func (n *Node) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		n.log.Info("draining", "over", n.cfg.DrainTimeout.String())
		return nil
	case <-n.fabric.Ended():
		return n.fabric.Conflict() // drained all the same: its viewers find another node
	case err := <-n.failed:
		return err
	}
}

// Close takes the node down so that nobody loses anything: not ready any more, no new connections, every client sent
// away with a time to come back, likes stored, the store closed. The admin listener goes last, so the drain can be
// watched.
func (n *Node) Close() error {
	n.health.draining.Store(true)
	var faults []error
	within := func(d time.Duration, what string, f func(context.Context) error) {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		if err := f(ctx); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", what, err))
		}
	}
	var requests sync.WaitGroup
	requests.Go(n.endRequests) // at the same time, for one slow request must keep nobody waiting for the word to leave
	window := n.cfg.DrainTimeout
	within(window+partTimeout, "send clients away", func(ctx context.Context) error { return n.acceptor.Shutdown(ctx, window) })
	requests.Wait()
	within(closeTimeout, "close rooms", n.hub.Close)
	n.lag.Close()
	within(closeTimeout, "give quotas back", n.quotas.close)
	n.book.Close()
	n.unlearn()
	within(closeTimeout, "close the store", n.fabric.Close)
	n.stop()
	within(closeTimeout, "end the admin listener", n.admin.Shutdown)
	n.running.Wait()
	err := errors.Join(faults...)
	n.log.Info("stopped", "err", err)
	return err
}

// endRequests closes the main listener and lets the requests under way end. What is still there after closeTimeout, such as
// a connection on which nothing was ever asked, is cut: that is the client's fault and no failure of the drain.
func (n *Node) endRequests() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := n.main.Shutdown(ctx); err != nil {
		n.log.Info("cut the requests that did not end", "err", errors.Join(err, n.main.Close()))
	}
}

// abandon undoes a start that failed half-way.
func (n *Node) abandon() {
	n.stop()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if n.acceptor != nil {
		n.logFailure("close sockets", n.acceptor.Shutdown(ctx, 0))
	}
	if n.hub != nil {
		n.logFailure("close rooms", n.hub.Close(ctx))
	}
	if n.lag != nil {
		n.lag.Close()
	}
	n.logFailure("give quotas back", n.quotas.close(ctx))
	if n.book != nil {
		n.book.Close()
	}
	if n.unlearn != nil {
		n.unlearn()
	}
	if n.fabric != nil {
		n.logFailure("close the store", n.fabric.Close(ctx))
	}
	if n.ln != nil {
		n.ln.close()
	}
}

func (n *Node) logFailure(what string, err error) {
	if err != nil {
		n.log.Warn(what, "err", err)
	}
}
