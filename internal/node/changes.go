package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/internal/api"
	"liveroom/internal/preview"
	"liveroom/internal/rulebook"
	"liveroom/limit"
	"liveroom/protocol"
)

// preview replays the recorded traffic through two sets of limits. It is an [api.Preview].
func (n *Node) preview(ctx context.Context, today, proposed *limit.Rules) (any, error) {
	report, err := n.replay(ctx, today, proposed)
	if err != nil {
		return nil, err
	}
	return report, nil
}

// replayPatience is how long a replay waits for the one before it. A replay of a busy window takes seconds of one core, which
// the sockets need: one runs at a time, and who finds several in front of it comes back later.
const replayPatience = 5 * time.Second

func (n *Node) replay(ctx context.Context, today, proposed *limit.Rules) (*preview.Report, error) {
	wait, stop := context.WithTimeout(ctx, replayPatience)
	defer stop()
	select {
	case n.replaying <- struct{}{}:
		defer func() { <-n.replaying }()
	case <-wait.Done():
		return nil, &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(replayPatience), Detail: "another preview is being computed"}
	}
	now := n.recorder.Now()
	traffic, err := n.traffic(ctx, now.Add(-previewWindow), now.Add(time.Second)) // an end to come, so that the last step is not cut off
	if err != nil {
		return nil, err
	}
	return preview.Replay(traffic, today, proposed), nil
}

// previewWindow is how far back a preview looks: what the recorder keeps.
const previewWindow = 5 * time.Minute

// judge says whether a change may be published as it is. It is a [rulebook.Config] Judge.
func (n *Node) judge(ctx context.Context, today, proposed *limit.Rules) error {
	needs := &api.NeedsOverride{Reasons: lockouts(proposed.All())}
	report, err := n.replay(ctx, today, proposed)
	switch {
	case err == nil:
		needs.Report = report
	case len(needs.Reasons) == 0:
		return err
	default:
		return needs // the rules say it, whatever the traffic says
	}
	verdict := report.Verdict()
	if !verdict.Override && len(needs.Reasons) == 0 {
		return nil
	}
	for _, r := range verdict.Reasons {
		needs.Reasons = append(needs.Reasons, r.Text)
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

// startGuard watches, until ctx ends, what is published on this node.
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
		Ended:      func(w preview.Watch) { ends.WithLabelValues(w.State).Inc() },
		Superseded: func(err error) bool { return errors.Is(err, rulebook.ErrConflict) },
	})
	if err != nil {
		return err
	}
	n.guard = guard
	n.running.Go(func() { _ = guard.Run(ctx) }) // ends with ctx's own error
	n.resumeWatch(ctx)
	return nil
}

// guardWatch is how long a set is watched after its publish.
const guardWatch = time.Minute

// resumeWatch watches on what was published less than guardWatch ago, as the history tells: whichever node watched may have
// been restarted since. Two nodes that watch the same do no harm, since the store takes the first rollback alone.
func (n *Node) resumeWatch(ctx context.Context) {
	set := n.book.Current()
	if set.Kind != rulebook.KindPublish && set.Kind != rulebook.KindRollback {
		return
	}
	now, err := n.fabric.RulesNow(ctx)
	age := now.Sub(set.Time)
	if err == nil && age >= guardWatch {
		return
	}
	var older []*rulebook.Set
	if err == nil {
		older, err = n.book.History(ctx, set.Version, 20)
	}
	if err != nil || len(older) == 0 {
		n.log.Warn("limits: the watch over the set in force could not be taken up again", "version", set.Version, "err", err)
		return
	}
	base, next := older[0], set
	for _, old := range older { // what was in force before the first that has not proved itself
		base = old
		if next.Time.Sub(old.Time) >= guardWatch || old.Kind == rulebook.KindGuard {
			break
		}
		next = old
	}
	n.guard.Watch(base.Compiled(), set.Compiled(), n.recorder.Now().Add(-age))
	n.log.Info("limits: watching on over the set in force", "version", set.Version, "previous", base.Version)
}

// published hands what somebody has published on this node to the guard.
func (n *Node) published(before, after *rulebook.Set) {
	if after.Kind != rulebook.KindGuard {
		n.guard.Watch(before.Compiled(), after.Compiled(), n.recorder.Now())
	}
}
