package conn

import (
	"context"
	"math/rand/v2"
	"time"

	"liveroom/protocol"
)

// Shutdown sends every client away with 1001 and a time to come back, the closes spread evenly and in random order over
// the window, so that they do not come back at one instant. New sockets are turned away meanwhile. It returns after the
// last goroutine has ended; when ctx ends before that, the sockets that are left are cut, and ctx's error is returned. A
// seat that does not return from Receive keeps Shutdown waiting. The acceptor can't be used afterwards.
func (a *Acceptor) Shutdown(ctx context.Context, window time.Duration) error {
	a.draining.Store(true)
	sessions := a.wheel.all()
	rand.Shuffle(len(sessions), func(i, j int) { sessions[i], sessions[j] = sessions[j], sessions[i] })
	a.closeSpread(ctx, sessions, window)

	a.mu.Lock()
	a.stopped = true
	a.mu.Unlock()
	err := a.await(ctx)
	a.cancel()
	a.running.Wait()
	a.readers.stop()
	if a.poller != nil {
		a.poller.close()
	}
	a.sweeper.Wait()
	a.readers.live.Wait()
	return err
}

// closeSpread closes the sessions one after the other over the window.
func (a *Acceptor) closeSpread(ctx context.Context, sessions []*Session, window time.Duration) {
	t := time.NewTimer(0)
	defer t.Stop()
	start := time.Now()
	for i, s := range sessions {
		due := time.Duration(float64(window) * float64(i) / float64(len(sessions)))
		if wait := due - time.Since(start); wait > 0 {
			t.Reset(wait)
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
		}
		s.Close(*a.sendAway(protocol.CloseGoingAway, 0))
	}
}

// await waits for the sessions to end, and cuts what is left when ctx ends.
func (a *Acceptor) await(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		a.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	a.cancel()
	for _, s := range a.wheel.all() {
		s.abort()
	}
	<-done
	return ctx.Err()
}
