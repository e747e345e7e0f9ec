package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
)

// disk is a store in memory that takes its time.
type disk struct {
	mu    sync.Mutex
	takes time.Duration // a group; what takes longer than the context fails at its end, and is stored all the same
	has   map[int]bool
	most  int // in a group
}

func (d *disk) store(ctx context.Context, group []*write) {
	var err error
	d.mu.Lock()
	takes := d.takes
	d.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		err = fmt.Errorf("%w: %w", link.ErrUnknown, ctx.Err())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.most = max(d.most, len(group))
	for _, w := range group {
		var i int
		_, _ = fmt.Sscan(w.room, &i)
		d.has[i] = true
		w.ack, w.err = &jetstream.PubAck{Sequence: uint64(i)}, err
	}
}

// TestEveryGiftIsAnsweredInTime, whatever the disk does, by groups that a second of 4,000 gifts comes to: all are answered once within three
// seconds, none before those of its group; what was refused is not stored, now or later, and what was acknowledged is.
func TestEveryGiftIsAnsweredInTime(t *testing.T) {
	const gifts, timeout, within = 4000, 2 * time.Second, 3 * time.Second
	for name, c := range map[string]struct {
		takes                      time.Duration
		stored, refused, uncertain bool
	}{
		"quick":       {takes: 10 * time.Millisecond, stored: true},
		"slow":        {takes: 1200 * time.Millisecond, stored: true, refused: true},
		"very slow":   {takes: 1900 * time.Millisecond, stored: true, refused: true},
		"hangs":       {takes: time.Hour, refused: true, uncertain: true},
		"hangs later": {takes: 0, stored: true, refused: true, uncertain: true}, // from the tenth of a second on
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &disk{takes: c.takes, has: map[int]bool{}}
				known := 0
				g := newGroups(timeout, d.store, func(group []*write) { known += len(group) })
				ctx, stop := context.WithCancel(t.Context())
				var loop sync.WaitGroup
				loop.Go(func() { g.run(ctx) })
				var mu sync.Mutex
				told := map[int]error{}
				for i := range gifts {
					if i == gifts/10 && name == "hangs later" {
						d.mu.Lock()
						d.takes = time.Hour
						d.mu.Unlock()
					}
					since := time.Now()
					w := &write{room: fmt.Sprint(i), since: since, until: since.Add(within)}
					w.done = func(ack *jetstream.PubAck, err error) {
						mu.Lock()
						defer mu.Unlock()
						if _, twice := told[i]; twice {
							t.Errorf("gift %d is answered twice", i)
						}
						if waited := time.Since(since); waited > within {
							t.Errorf("gift %d waited %v", i, waited)
						}
						if err == nil && ack.Sequence != uint64(i) {
							t.Errorf("gift %d has %d", i, ack.Sequence)
						}
						told[i] = err
					}
					g.begin(w)
					time.Sleep(time.Second / gifts)
				}
				time.Sleep(within)
				synctest.Wait()
				stop()
				loop.Wait()
				var stored, refused, uncertain int
				for i := range gifts {
					switch err, answered := told[i]; {
					case !answered:
						t.Fatalf("gift %d has no answer", i)
					case err == nil:
						if stored++; !d.has[i] {
							t.Errorf("gift %d is acknowledged and not stored", i)
						}
					case errors.Is(err, link.ErrRefused) && errors.Is(err, ErrLate):
						if refused++; d.has[i] {
							t.Errorf("gift %d is refused and stored", i)
						}
					case errors.Is(err, link.ErrUnknown):
						uncertain++
					default:
						t.Errorf("gift %d: %v", i, err)
					}
				}
				t.Logf("%d stored, %d refused, of %d nobody knows; groups up to %d", stored, refused, uncertain, d.most)
				if stored > 0 != c.stored || refused > 0 != c.refused || uncertain > 0 != c.uncertain || d.most > groupMost || known != stored+uncertain {
					t.Errorf("want stored %v, refused %v, uncertain %v; %d of them known", c.stored, c.refused, c.uncertain, known)
				}
			})
		})
	}
}

// TestALineIsAsLongAsTheDiskIsQuick: behind a slow disk what would wait too long is refused at once, and behind a quick one again nothing is.
func TestALineIsAsLongAsTheDiskIsQuick(t *testing.T) {
	g := newGroups(2*time.Second, nil, nil)
	for range 100 {
		g.learn(groupMost, time.Hour)
	}
	var refused []error
	put := func() {
		g.begin(&write{done: func(_ *jetstream.PubAck, err error) { refused = append(refused, err) }})
	}
	for range groupMost {
		put()
	}
	if len(refused) > 0 || !g.late() {
		t.Fatalf("%d refused, late %v", len(refused), g.late())
	}
	if put(); len(refused) != 1 || !errors.Is(refused[0], link.ErrRefused) || !errors.Is(refused[0], ErrLate) {
		t.Errorf("behind a full line: %v", refused)
	}
	if g.learn(groupMost, time.Millisecond); g.late() {
		t.Error("after a quick group it is still late")
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	g.run(ended)
	put()
	if n := len(refused); n != groupMost+2 || !errors.Is(refused[n-1], link.ErrClosed) || !errors.Is(refused[1], link.ErrRefused) {
		t.Errorf("after the end %d are answered, the last with %v", n, refused[n-1])
	}
}
