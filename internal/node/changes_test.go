package node

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

// TestOneReplayAtATime: a replay takes seconds of a core, so that a second waits for it, and not for long.
func TestOneReplayAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &Node{replaying: make(chan struct{}, 1)}
		n.replaying <- struct{}{}
		began := time.Now()
		_, err := n.replay(context.Background(), nil, nil)
		var busy *protocol.Error
		if !errors.As(err, &busy) || busy.Reason != protocol.ReasonTryLater || busy.RetryAfter < replayPatience {
			t.Errorf("%v", err)
		}
		if waited := time.Since(began); waited != replayPatience {
			t.Errorf("waited %v", waited)
		}
	})
}
