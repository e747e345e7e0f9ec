package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/internal/api"
	"liveroom/internal/edition"
	"liveroom/internal/preview"
	"liveroom/internal/rulebook"
	"liveroom/limit"
	"liveroom/protocol"
)

// changes is this node's say in a change of the limits: before it is published, and for a minute after.
type changes struct {
	*rulebook.Book // nil until it is open
	node           *Node
	guard          *preview.Guard
	ends           *prometheus.CounterVec
	replaying      chan struct{} // has one place, which the replay under way holds
	looking        chan struct{} // the same for the look at what is in force
	settled        uint64        // the version that needs no look any more; owned by who looks
}

var (
	_ rulebook.Review = (*changes)(nil)
	_ preview.Book    = (*changes)(nil)
	_ api.Changes     = (*changes)(nil)
)

func newChanges(n *Node, reg prometheus.Registerer) *changes {
	c := &changes{node: n, replaying: make(chan struct{}, 1), looking: make(chan struct{}, 1), ends: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "liveroom_guard_watches_total", Help: "Watches over new sets of limits that ended on this node, by how.",
	}, []string{"end"})}
	for _, end := range []string{preview.StateKept, preview.StateRolledBack, preview.StateSuperseded, preview.StateUnjudged} {
		c.ends.WithLabelValues(end)
	}
	reg.MustRegister(c.ends)
	return c
}

// startGuard watches what is published on this node, and what others published that cannot watch it any more.
func (n *Node) startGuard(ctx context.Context) {
	c := n.changes
	c.guard = preview.NewGuard(preview.GuardConfig{Source: n.traffic, Book: c, Now: n.recorder.Now, Log: n.log})
	n.runs("the guard of limits", func(ctx context.Context) { _ = c.guard.Run(ctx) }) // ends with ctx's own error
	c.look(ctx)
	n.every("minding watches", time.Second, c.look)
}

// patience is how long a replay waits for the one before it. A replay of a busy window takes seconds of one core, which
// the sockets need: one runs at a time, and who finds several in front of it comes back later.
const patience = 5 * time.Second

// Preview replays the recorded traffic through the set in force and a proposed one.
func (c *changes) Preview(ctx context.Context, today, proposed *limit.Rules) (*preview.Report, error) {
	wait, stop := context.WithTimeout(ctx, patience)
	defer stop()
	select {
	case c.replaying <- struct{}{}:
		defer func() { <-c.replaying }()
	case <-wait.Done():
		return nil, &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(patience), Detail: "another preview is being computed"}
	}
	now := c.node.recorder.Now()
	traffic, err := c.node.traffic(ctx, now.Add(-preview.Window), now.Add(time.Second)) // an end to come, so that the last step is not cut off
	if err != nil {
		return nil, err
	}
	return preview.Replay(traffic, today, proposed), nil
}

// Judge implements [rulebook.Review].
func (c *changes) Judge(ctx context.Context, today, proposed *limit.Rules) error {
	needs := &api.NeedsOverride{Reasons: lockouts(proposed.All())}
	report, err := c.Preview(ctx, today, proposed)
	if err != nil {
		if len(needs.Reasons) == 0 {
			return err
		}
		return needs // the rules say it, whatever the traffic says
	}
	needs.Report = report
	for _, r := range report.Judge().Reasons {
		needs.Reasons = append(needs.Reasons, r.Text)
	}
	if len(needs.Reasons) == 0 {
		return nil
	}
	return needs
}

// lockouts names the rules after whose burst nobody comes in or calls any more, ever. No preview sees that as long as the burst lasts.
func lockouts(rules []limit.Rule) []string {
	var named []string
	for _, r := range rules {
		dry := r.Rate == 0 && len(r.Tiers) == 0
		for _, t := range r.Tiers {
			dry = dry || t.Rate == 0
		}
		if !dry || r.Shadow || r.Algorithm == "concurrency" {
			continue
		}
		for _, action := range r.Action {
			switch name, _, _ := strings.Cut(action, ":"); name {
			case limit.API.String(), limit.Connect.String(), limit.Join.String(), limit.Frame.String():
				named = append(named, fmt.Sprintf("rule %q has rate 0: after its burst nothing of %s passes it any more", r.Name, action))
			}
		}
	}
	return named
}

// Published hands what somebody has published on this node to the guard.
func (c *changes) Published(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), patience) // it is published, whether its author waits or not
	defer stop()
	c.look(ctx)
}

// look takes up the watch over the set in force when it falls to this node: to the one that published it, which may have been
// restarted since, or when that is gone to the living one with the smallest id. That two nodes watch the same for a while does no
// harm, since the store takes the first rollback alone.
func (c *changes) look(ctx context.Context) {
	select {
	case c.looking <- struct{}{}:
		defer func() { <-c.looking }()
	case <-ctx.Done():
		return
	}
	n, set := c.node, c.Current()
	if (set.Kind != edition.KindPublish && set.Kind != edition.KindRollback) || set.Version <= c.settled ||
		c.guard.Watching().Version >= int64(set.Version) || watcher(set.Node, n.cfg.NodeID, n.fabric.Presence.Nodes()) != n.cfg.NodeID {
		return
	}
	base, stored, err := c.Unproved(ctx, set.Version, preview.WatchFor)
	var age time.Duration
	if err == nil {
		var now time.Time
		now, err = n.fabric.Store.Rules.Now(ctx)
		age = now.Sub(stored)
	}
	switch {
	case errors.Is(err, edition.ErrNotFound), err == nil && age >= preview.WatchFor: // nothing to go back to, or proved
		c.settled = set.Version
		return
	case err != nil:
		n.log.Warn("limits: the watch over the set in force could not be taken up yet", "version", set.Version, "err", err)
		return
	}
	c.guard.Watch(base.Compiled(), set.Compiled(), n.recorder.Now().Add(-age))
	n.log.Info("limits: watching over the set in force", "version", set.Version, "previous", base.Version, "published_on", set.Node)
}

// watcher is the node that watches what publisher put in force.
func watcher(publisher, self string, others []string) string {
	if alive := append(slices.Clone(others), self); !slices.Contains(alive, publisher) {
		return slices.Min(alive)
	}
	return publisher
}

// Watching tells what the guard sees of the last change that this node watches or has watched.
func (c *changes) Watching() preview.Watch { return c.guard.Watching() }

// WatchEnded implements [preview.Book]: it keeps how a watch ended for the history.
func (c *changes) WatchEnded(ctx context.Context, e rulebook.Ending) {
	c.ends.WithLabelValues(e.End).Inc()
	e.Node = c.node.cfg.NodeID
	if err := c.Book.WatchEnded(ctx, e); err != nil {
		c.node.log.Warn("limits: the history does not tell how a watch ended", "version", e.Version, "state", e.End, "err", err)
	}
}
