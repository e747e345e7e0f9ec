package fanout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"liveroom/fanout/feed"
	"liveroom/fanout/link"
	"liveroom/fanout/presence"
	"liveroom/fanout/question"
	"liveroom/fanout/store"
)

// Fabric is one node's end of what the nodes share: the parts, and the order in which they begin and end.
type Fabric struct {
	// Fixed after Open.
	Link      *link.Link
	Store     *store.Store
	Feeds     *feed.Feeds
	Presence  *presence.Presence
	Questions *question.Questions

	cfg    Config
	bus    *feed.Live
	stop   context.CancelFunc // of the loops
	loops  sync.WaitGroup
	closed atomic.Bool
}

// Open connects, starting the embedded server when there are no URLs, and creates the streams that are missing. ctx
// bounds the opening alone.
func Open(ctx context.Context, cfg Config, log *slog.Logger) (*Fabric, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	f := &Fabric{cfg: cfg.withDefaults()}
	if err := f.open(ctx, log); err != nil {
		f.shut()
		return nil, fmt.Errorf("open fanout: %w", err)
	}
	return f, nil
}

func (f *Fabric) open(ctx context.Context, log *slog.Logger) (err error) {
	cfg := f.cfg
	f.Link, err = link.Open(ctx, cfg.link(), log)
	if err != nil {
		return err
	}
	f.Store, err = store.Open(ctx, f.Link, cfg.store())
	if err != nil {
		return err
	}
	f.bus = feed.NewLive(f.Link, cfg.PendingMessages, cfg.Metrics)
	f.Feeds = feed.New(f.bus, f.Store, cfg.StoreTimeout, feed.NewMetrics(cfg.Metrics), log)
	f.Presence = presence.New(f.Link, presence.Config{
		NodeID: cfg.NodeID, Incarnation: f.Store.Incarnation(), Shared: cfg.Shared,
		AnnounceEvery: cfg.AnnounceEvery, NodeTimeout: cfg.NodeTimeout, Metrics: presence.NewMetrics(cfg.Metrics),
	}, f.Feeds)
	if !f.Link.Embedded() {
		if err := f.Presence.Meet(ctx); err != nil {
			return err
		}
	}
	f.Questions, err = question.New(f.Link, cfg.NodeID, f.Store.Incarnation(), f.Presence.Nodes, question.NewMetrics(cfg.Metrics))
	if err != nil {
		return err
	}
	return f.run(ctx)
}

// run starts the loops, each ended by stop and waited for by Close.
func (f *Fabric) run(opening context.Context) error {
	if err := f.Presence.Start(); err != nil {
		return err
	}
	if err := f.Link.Start(link.Hooks{Returned: f.returned, Slow: f.bus.Slow}); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	f.loops.Go(func() { f.Presence.Run(ctx) })
	f.loops.Go(func() { f.watch(ctx) })
	if err := f.Store.Start(ctx, opening, &f.loops, f.Feeds); err != nil {
		return err
	}
	rooms := f.Link.FollowEach(link.FollowRooms, f.cfg.SweepEvery, 3*f.cfg.SweepEvery, f.Feeds.Sweep)
	rooms.News = f.Feeds.Soon
	_ = rooms.LookOnce(opening) // its loop looks again
	f.loops.Go(func() { rooms.Run(ctx) })
	f.loops.Go(func() { f.Link.KeepTrying(ctx, f.cfg.SweepEvery) })
	select {
	case <-f.Presence.Heard(): // ready means heard
	case <-time.After(f.cfg.StoreTimeout):
	case <-opening.Done():
	}
	return nil
}

// returned is for a connection that is back.
func (f *Fabric) returned() {
	f.Store.LookAfter()
	f.Presence.Soon()
}

// watch looks in each period of the probe whether all is well.
func (f *Fabric) watch(ctx context.Context) {
	var ill time.Time // when something was wrong last
	look := func(context.Context) {
		f.Link.Probe()
		now := time.Now()
		if f.Health() != nil {
			ill = now
		}
		f.Presence.Count(now, now.Sub(ill) > f.cfg.NodeTimeout)
		f.Questions.Expire(now)
		f.bus.CountDropped()
	}
	look(ctx)
	link.Every(ctx, f.cfg.ProbeEvery, nil, look)
}

// Close stores the likes that wait, says goodbye to the other nodes, lets the handlers finish what has arrived, and
// stops the embedded server. It returns after the last goroutine; beyond ctx it cuts short what is not done. A second
// call returns ErrClosed.
func (f *Fabric) Close(ctx context.Context) error {
	if f.closed.Swap(true) {
		return link.ErrClosed
	}
	f.Feeds.Close()
	f.Link.BeginClose()
	f.end()
	err := errors.Join(f.Store.Likes.Flush(ctx), f.Presence.Goodbye(ctx), f.Link.Drain(ctx))
	f.shut()
	return err
}

// end stops all loops.
func (f *Fabric) end() {
	if f.stop != nil {
		f.stop()
	}
	if f.Questions != nil {
		f.Questions.Close()
	}
	f.loops.Wait()
}

// shut closes what is open, in reverse.
func (f *Fabric) shut() {
	f.end()
	if f.Link != nil {
		f.Link.Shut()
	}
	if f.Store != nil {
		f.Store.Close()
	}
}

var errDeaf = errors.New("fanout: nats accepts messages and delivers none")

// Health returns nil when everything works, and otherwise the faults, joined. A broker may accept everything and deliver nothing;
// only messages to ourselves tell. It does not wait.
func (f *Fabric) Health() error {
	faults := []error{f.Presence.Conflict(), f.Link.Allowed()}
	if !f.Link.Connected() {
		faults = append(faults, link.ErrDisconnected)
	} else if f.Link.Deaf(time.Now()) {
		faults = append(faults, errDeaf)
	}
	if _, answers := f.Store.Gifts.Size(); !answers {
		faults = append(faults, store.ErrNoStore)
	}
	return errors.Join(faults...)
}
