package cluster

import (
	"context"
	"slices"
	"time"
)

// How often a shard is asked how it is, the sooner the more is wrong, and how
// often this node looks at its peers. What it saw is good for stillReachable:
// a process that was paused for longer must look again.
const (
	beatEvery      = 300 * time.Millisecond
	beatWhenFailed = 20 * time.Millisecond
	lookEvery      = 200 * time.Millisecond
	stillReachable = 500 * time.Millisecond
)

// beat finds out that a shard is away though nobody asks it, that it is back,
// and that it is another than before.
func (l *lane) beat(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	life := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-l.doubt:
		}
		next := beatEvery
		if !l.ask(ctx, &life) {
			next = beatWhenFailed
		}
		timer.Reset(next)
	}
}

// ask asks the shard for its life and reports whether it answered.
func (l *lane) ask(ctx context.Context, life *string) bool {
	if !l.exists() {
		return true
	}
	done, err := l.health.probe()
	if err != nil {
		return false
	}
	within, cancel := context.WithTimeout(ctx, l.cluster.timing.patience())
	sent := l.cluster.cfg.Clock()
	now, err := l.cluster.cfg.Store.Beat(within, l.shard)
	cancel()
	if ctx.Err() != nil {
		err = nil // this node ends, not the shard
	} else if err == nil {
		l.cluster.timing.sawTrip(l.cluster.cfg.Clock().Sub(sent))
		l.noteLife(life, now)
	}
	was := l.health.away.Load()
	done(err) // last: nobody calls a shard that is back before its life is known
	if was && !l.health.away.Load() {
		l.tellDebts()
	}
	l.cluster.count.calls(opOther, err)
	return err == nil
}

// exists tells whether the store still has the shard: one whose keys others have
// taken over is nobody's outage.
func (l *lane) exists() bool { return slices.Contains(l.cluster.cfg.Store.Shards(), l.shard) }

// noteLife begins a new life when the shard says another word than last time.
func (l *lane) noteLife(was *string, now string) {
	if *was != "" && now != *was {
		l.changed.Store(int64(max(l.cluster.cfg.Clock(), 1)))
		l.life.Add(1)
	}
	*was = now
}
