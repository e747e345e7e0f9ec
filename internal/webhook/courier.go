package webhook

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"liveroom/internal/hook"
	"liveroom/internal/journal"
)

// Prefix begins the names of webhooks' consumers.
const Prefix = "webhook-"

// Platform is asked to take events: a hook.Endpoint.
type Platform interface {
	// Call asks; its error is a *[hook.Failure].
	Call(ctx context.Context, c hook.Call, answer hook.Answer) error
	// Err returns nil unless the platform is away, in which case it is pinged until it is back.
	Err() error
}

// Config configures a [Courier]. Everything is required but the periods.
type Config struct {
	Name      string // of the webhook
	Node      string
	Rooms     []string // none: all
	Kinds     []journal.Kind
	Consumers journal.Consumers
	Platform  Platform
	Letters   Letters
	Metrics   *Metrics
	Log       *slog.Logger

	BeatEvery   time.Duration // the record is written at least so often. Default 1 s
	TakeAfter   time.Duration // without a write another node takes it over. Default 4 s
	LongestRest time.Duration // between two tries. Default 1 min
	GiveUpAfter time.Duration // one entry alone without being taken. Default 10 min
}

// Courier delivers for one webhook while this node holds its record.
type Courier struct {
	cfg  Config
	name string // of the consumer

	// Owned by Run.
	mine  journal.Consumer // as this node wrote it last, but for At
	kept  journal.Cursor   // mine.At as it is kept
	wrote time.Time        // when it was
	moved bool             // somebody has moved it
	seen  uint64           // another node's revision
	since time.Time        // when it was seen first
	line  line
}

// New returns a courier that does nothing until [Courier.Run].
func New(cfg Config) *Courier {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&cfg.BeatEvery, time.Second}, {&cfg.TakeAfter, 4 * time.Second}, {&cfg.LongestRest, time.Minute}, {&cfg.GiveUpAfter, 10 * time.Minute}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return &Courier{cfg: cfg, name: Prefix + cfg.Name}
}

// Name is the webhook's.
func (c *Courier) Name() string { return c.cfg.Name }

// Run delivers whenever this node is the one to, until ctx ends.
func (c *Courier) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if c.take(ctx) {
			c.cfg.Log.Info("this node delivers for a webhook", "webhook", c.cfg.Name)
			c.cfg.Metrics.hold(c.cfg.Name, true)
			c.work(ctx)
			c.cfg.Metrics.hold(c.cfg.Name, false)
			c.letGo(ctx)
		}
		select {
		case <-time.After(c.cfg.BeatEvery):
		case <-ctx.Done():
		}
	}
}

// take makes the record this node's, where it is nobody's or nobody writes it any more.
func (c *Courier) take(ctx context.Context) bool {
	got, err := c.cfg.Consumers.Consumer(ctx, c.name)
	switch {
	case errors.Is(err, journal.ErrNoConsumer):
		got, err = c.cfg.Consumers.Change(ctx, c.name, func(got *journal.Consumer, isNew bool) error {
			if !isNew {
				return journal.ErrMoved // another node was faster
			}
			var err error
			got.At, err = c.cfg.Consumers.Now(ctx)
			got.Moved, got.Rooms, got.Kinds = got.Made, c.cfg.Rooms, c.cfg.Kinds
			got.Owned, got.Holder = true, c.cfg.Node
			return err
		})
		if errors.Is(err, journal.ErrTooMany) {
			c.cfg.Log.Error("a webhook can't be delivered for: delete a consumer that nobody reads", "webhook", c.cfg.Name, "err", err)
		}
	case err == nil && got.Holder != "" && got.Holder != c.cfg.Node:
		now := time.Now()
		if got.Revision != c.seen {
			c.seen, c.since = got.Revision, now
		}
		if now.Sub(c.since) < c.cfg.TakeAfter {
			return false
		}
		fallthrough
	case err == nil: // also this node's own, of before it was killed
		if err = c.cfg.Consumers.Refit(ctx, &got, journal.Filter{Rooms: c.cfg.Rooms, Kinds: c.cfg.Kinds}); err == nil {
			got.Owned, got.Holder = true, c.cfg.Node
			err = c.cfg.Consumers.Save(ctx, &got)
		}
	}
	if err != nil {
		return false // the store's absence is told by others
	}
	c.mine, c.kept, c.wrote, c.moved = got, got.At, time.Now(), false
	c.line = line{}
	return true
}

// saveTries is how often a record is written that somebody else changes.
const saveTries = 3

// save writes the record; false when this node must not deliver any more.
func (c *Courier) save(ctx context.Context) bool {
	for range saveTries {
		at := c.mine.At
		if at != c.kept {
			c.mine.Moved = time.Now().UnixMilli()
		}
		err := c.cfg.Consumers.Save(ctx, &c.mine)
		if err == nil {
			c.kept, c.wrote = at, time.Now()
			return true
		}
		if !errors.Is(err, journal.ErrMoved) {
			break // whether it was written shows at the next
		}
		got, err := c.cfg.Consumers.Consumer(ctx, c.name)
		switch {
		case errors.Is(err, journal.ErrNoConsumer) || err == nil && got.Holder != c.cfg.Node:
			return false
		case err == nil && got.At == c.kept: // paused, or this node's own write whose answer was lost
			got.At = at
		case err == nil:
			c.kept, c.moved = got.At, got.At != at
		}
		if err == nil {
			c.mine = got
		}
	}
	return time.Since(c.wrote) < c.cfg.TakeAfter
}

// beat is save where it is time for it.
func (c *Courier) beat(ctx context.Context) bool {
	return time.Since(c.wrote) < c.cfg.BeatEvery || c.save(ctx)
}

// letGo leaves the record to the other nodes at once.
func (c *Courier) letGo(ctx context.Context) {
	if ctx.Err() == nil {
		c.cfg.Log.Info("another node delivers for a webhook", "webhook", c.cfg.Name)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.BeatEvery)
	defer cancel()
	c.mine.Holder = ""
	_ = c.cfg.Consumers.Save(ctx, &c.mine) // else they take it a moment later
}

// lookEvery is how often a line that rests looks up.
const lookEvery = 100 * time.Millisecond

// rest waits until something is so; false when this node must not deliver any more.
func (c *Courier) rest(ctx context.Context, until func() bool) bool {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for !until() && !c.moved {
		select {
		case <-tick.C:
			if !c.beat(ctx) {
				return false
			}
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// during runs f in a goroutine, which ends before it returns, and writes the record meanwhile; false when this node must not deliver
// any more.
func (c *Courier) during(ctx context.Context, f func(context.Context)) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() { // waited for below
		defer close(done)
		f(ctx)
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for held := true; ; {
		select {
		case <-done:
			return held && ctx.Err() == nil
		case <-tick.C:
			if held = held && c.beat(ctx); !held {
				cancel()
			}
		}
	}
}
