package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestClosers: the last made goes first, a fault stops nothing, and whoever is in a hurry waits for the one under way no longer
// and a second for each after it.
func TestClosers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all closers
		var ended []string
		add := func(what string, takes time.Duration) {
			all.add(what, time.Minute, func(ctx context.Context) error {
				ended = append(ended, what)
				select {
				case <-time.After(takes):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		}
		add("made first", 0)
		add("hangs", time.Hour)
		add("slow", time.Hour)
		add("made last", time.Second)

		hurry, now := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, now)
		began := time.Now()
		err := all.run(hurry)
		if got := fmt.Sprint(ended); got != "[made last slow hangs made first]" {
			t.Errorf("ended %s", got)
		}
		if took := time.Since(began); took != 10*time.Second+hurryTimeout {
			t.Errorf("took %v", took)
		}
		if !errors.Is(err, context.Canceled) || !errors.Is(err, context.DeadlineExceeded) || err.Error() != "slow: context canceled\nhangs: context deadline exceeded" {
			t.Errorf("%v", err)
		}
		if err := all.run(hurry); err != nil || len(ended) != 4 {
			t.Errorf("again: %v, %v", ended, err)
		}
	})
}
