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
		c := &changes{replaying: make(chan struct{}, 1)}
		c.replaying <- struct{}{}
		began := time.Now()
		_, err := c.Preview(context.Background(), nil, nil)
		var busy *protocol.Error
		if !errors.As(err, &busy) || busy.Reason != protocol.ReasonTryLater || busy.RetryAfter < patience {
			t.Errorf("%v", err)
		}
		if waited := time.Since(began); waited != patience {
			t.Errorf("waited %v", waited)
		}
	})
}

// TestWatcher: a set is watched where it was published, else on the living node with the smallest id.
func TestWatcher(t *testing.T) {
	for _, c := range []struct {
		publisher, self string
		others          []string
		want            string
	}{
		{"n2", "n1", []string{"n2", "n3"}, "n2"},
		{"n2", "n2", []string{"n1"}, "n2"},
		{"n2", "n3", []string{"n4", "n1"}, "n1"},
		{"", "n1", nil, "n1"},
	} {
		if got := watcher(c.publisher, c.self, c.others); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
