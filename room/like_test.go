package room

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"liveroom/protocol"
)

// While nothing can be stored a like is refused with a time to come back, and none of it is counted.
func TestLikesAreRefusedWhileNothingIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		w := newWorld(t, newMemoryBus(), func(c *Config) {
			c.Storing = func() error {
				if full.Load() {
					return errors.New("full")
				}
				return nil
			}
		})
		a := w.join("demo", "a")
		full.Store(true)
		wantCode(t, a.like(3), protocol.Unavailable, protocol.ReasonTryLater)
		full.Store(false)
		wantCode(t, a.like(1), protocol.OK, "")
	})
}
