package node

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"liveroom/fanout/store"
	"liveroom/internal/lock"
	"liveroom/room"
)

// eraser takes out of the logs what rooms forget. The node that was asked does it; where that one is gone, any other.
type eraser struct {
	node    string
	kept    *store.Erasures
	records prometheus.Counter

	mu   lock.Mutex[lock.Leaf]
	open map[store.Erasure]struct{} // not known to be taken out
}

const (
	eraseEvery = time.Second
	// eraseForOthers is how long another node is waited for, which may be reading much.
	eraseForOthers = 5 * time.Minute
	// forgetAgain is how old may be what a starting node has its rooms forget.
	forgetAgain = 10 * time.Minute
)

// openEraser follows what is to be forgotten on any node, ever since.
func (n *Node) openEraser(ctx context.Context, reg prometheus.Registerer) error {
	e := &eraser{node: n.cfg.NodeID, kept: n.fabric.Store.Erasures, open: map[store.Erasure]struct{}{}, records: promauto.With(reg).NewCounter(prometheus.CounterOpts{
		Name: "liveroom_erased_records_total", Help: "Records that this node took out of the logs.",
	})}
	stop, err := e.kept.FollowErasures(ctx, func(x store.Erasure, known bool) {
		e.note(x)
		if !known || time.Since(time.UnixMilli(x.Until)) < forgetAgain {
			n.hub.Forget(room.Erasure(x))
		}
	})
	if err != nil {
		return err
	}
	n.closers.add("end following what is to be forgotten", 0, func(context.Context) error { stop(); return nil })
	n.every("erasing", eraseEvery, func(ctx context.Context) { n.erase(ctx, e) })
	return nil
}

// note keeps what is to be done, in place of what was to be done about the same.
func (e *eraser) note(x store.Erasure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.open, func(o store.Erasure, _ struct{}) bool { return o.Room == x.Room && o.User == x.User && o.MID == x.MID })
	if !x.Done {
		e.open[x] = struct{}{}
	}
}

// due are those that this node takes out now, by room; all that are of no room share one reading of the logs.
func (e *eraser) due(now time.Time) map[string][]store.Erasure {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := map[string][]store.Erasure{}
	for x := range e.open {
		at := time.UnixMilli(x.At)
		if x.Node != e.node {
			at = at.Add(eraseForOthers)
		}
		if !now.Before(at) {
			out[x.Room] = append(out[x.Room], x)
		}
	}
	return out
}

// erase takes out what is due. What fails is tried again.
func (n *Node) erase(ctx context.Context, e *eraser) {
	due := e.due(time.Now())
	for _, room := range slices.Sorted(maps.Keys(due)) {
		took, err := e.kept.TakeOut(ctx, due[room])
		e.records.Add(float64(took))
		for _, x := range due[room] {
			if err == nil {
				x.Done = true
				err = e.kept.Erase(ctx, x)
			}
		}
		if err != nil {
			if ctx.Err() == nil {
				n.log.Warn("what was erased is still in the logs; it is tried again", "room", room, "err", err)
			}
			return
		}
		n.log.Info("erased", "room", room, "asked", len(due[room]), "records", took)
	}
}
