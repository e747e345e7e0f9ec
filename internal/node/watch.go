package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/internal/preview"
	"liveroom/internal/rulebook"
)

// guardWatch is how long a set is watched after its publish.
const guardWatch = time.Minute

// startGuard watches what is published on this node, and what others published that cannot watch it any more.
func (n *Node) startGuard(ctx context.Context, reg prometheus.Registerer) error {
	ends := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "liveroom_guard_watches_total", Help: "Watches over new sets of limits that ended on this node, by how.",
	}, []string{"end"})
	for _, end := range []string{preview.StateKept, preview.StateRolledBack, preview.StateSuperseded, preview.StateUnjudged} {
		ends.WithLabelValues(end)
	}
	reg.MustRegister(ends)
	guard, err := preview.NewGuard(preview.GuardConfig{
		Source: n.traffic, Book: n.book, Log: n.log, Watch: guardWatch, Now: n.recorder.Now,
		InForce: func() int64 { return int64(n.book.Current().Version) },
		Ended: func(ctx context.Context, w preview.Watch) {
			ends.WithLabelValues(w.State).Inc()
			n.tellEnd(ctx, w)
		},
		Superseded: func(err error) bool { return errors.Is(err, rulebook.ErrConflict) },
	})
	if err != nil {
		return err
	}
	n.guard = guard
	n.runs("the guard of limits", func(ctx context.Context) { _ = guard.Run(ctx) }) // ends with ctx's own error
	m := minder{Node: n}
	m.look(ctx)
	n.every("minding watches", time.Second, m.look)
	return nil
}

// tellEnd keeps how a watch ended for the history.
func (n *Node) tellEnd(ctx context.Context, w preview.Watch) {
	err := n.book.WatchEnded(ctx, rulebook.Ending{
		Version: uint64(w.Version), End: w.State, Node: n.cfg.NodeID, At: time.Now().UTC(),
		Users: w.Users, Refused: w.Refused, WouldRefuse: w.WouldRefuse, Why: w.Why,
	})
	if err != nil {
		n.log.Warn("limits: the history does not tell how a watch ended", "version", w.Version, "state", w.State, "err", err)
	}
}

// minder takes up watches that fall to this node.
type minder struct {
	*Node
	settled uint64 // the version that needs no look any more
}

// look takes up the watch over the set in force when it falls to this node: to the one that published it, which may have been
// restarted since, or when that is gone to the living one with the smallest id. That two nodes watch the same for a while does no
// harm, since the store takes the first rollback alone.
func (n *minder) look(ctx context.Context) {
	set := n.book.Current()
	if (set.Kind != rulebook.KindPublish && set.Kind != rulebook.KindRollback) || set.Version <= n.settled ||
		n.guard.Watching().Version >= int64(set.Version) || watcher(set.Node, n.cfg.NodeID, n.fabric.Nodes()) != n.cfg.NodeID {
		return
	}
	now, err := n.fabric.RulesNow(ctx)
	age := now.Sub(set.Time)
	if err == nil && age >= guardWatch {
		n.settled = set.Version
		return
	}
	var base *rulebook.Set
	if err == nil {
		base, err = n.book.Unproved(ctx, set.Version, guardWatch)
	}
	if errors.Is(err, rulebook.ErrNotFound) { // nothing to go back to
		n.settled = set.Version
		return
	}
	if err != nil {
		n.log.Warn("limits: the watch over the set in force could not be taken up yet", "version", set.Version, "err", err)
		return
	}
	n.guard.Watch(base.Compiled(), set.Compiled(), n.recorder.Now().Add(-age))
	n.log.Info("limits: watching on over the set in force", "version", set.Version, "previous", base.Version, "published_on", set.Node)
}

// watcher is the node that watches what publisher put in force.
func watcher(publisher, self string, others []string) string {
	if alive := append(slices.Clone(others), self); !slices.Contains(alive, publisher) {
		return slices.Min(alive)
	}
	return publisher
}

// published hands what somebody has published on this node to the guard.
func (n *Node) published(before, after *rulebook.Set) {
	if after.Kind == rulebook.KindGuard {
		return
	}
	at := n.recorder.Now()
	ctx, stop := context.WithTimeout(context.Background(), replayPatience)
	defer stop()
	if base, err := n.book.Unproved(ctx, after.Version, guardWatch); err == nil {
		before = base
	}
	n.guard.Watch(before.Compiled(), after.Compiled(), at)
}
