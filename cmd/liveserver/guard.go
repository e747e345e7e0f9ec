package main

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/internal/api"
	"liveroom/internal/preview"
	"liveroom/internal/rulebook"
	"liveroom/limit"
	"liveroom/protocol"
)

// watchTraffic lets a recorder and a head count look on at the gate.
func (n *node) watchTraffic(reg prometheus.Registerer) error {
	recorder, err := preview.NewRecorder(preview.Config{Node: n.cfg.NodeID, Clock: n.gate.Now})
	if err != nil {
		return err
	}
	n.recorder, n.lately = recorder, newLately()
	n.gate.Observe(observers{newHeadcount(n.gate, reg), recorder, n.lately.top})
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "liveroom_preview_sampled_ratio", Help: "Share of users whose requests are kept for previews of the limits.",
	}, func() float64 { return recorder.Stats().Share }))
	return nil
}

// preview replays the recorded traffic through two sets of limits. It is an [api.Preview].
func (n *node) preview(ctx context.Context, today, proposed *limit.Rules) (any, error) {
	report, err := n.replay(ctx, today, proposed)
	if err != nil {
		return nil, err
	}
	return report, nil
}

// replayPatience is how long a replay waits for the one before it. A replay of a busy window takes seconds of one core, which
// the sockets need: one runs at a time, and who finds several in front of it comes back later.
const replayPatience = 5 * time.Second

func (n *node) replay(ctx context.Context, today, proposed *limit.Rules) (*preview.Report, error) {
	wait, stop := context.WithTimeout(ctx, replayPatience)
	defer stop()
	select {
	case n.replaying <- struct{}{}:
		defer func() { <-n.replaying }()
	case <-wait.Done():
		return nil, &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(replayPatience), Detail: "another preview is being computed"}
	}
	now := time.Now()
	traffic, err := n.traffic(ctx, now.Add(-previewWindow), now.Add(time.Second)) // an end to come, so that the last step is not cut off
	if err != nil {
		return nil, err
	}
	return preview.Replay(traffic, today, proposed), nil
}

// previewWindow is how far back a preview looks: what the recorder keeps.
const previewWindow = 5 * time.Minute

// judge says whether a change may be published as it is. It is a [rulebook.Config] Judge.
func (n *node) judge(ctx context.Context, today, proposed *limit.Rules) error {
	report, err := n.replay(ctx, today, proposed)
	if err != nil {
		return err
	}
	verdict := report.Verdict()
	if !verdict.Override {
		return nil
	}
	needs := &api.NeedsOverride{Report: report}
	for _, r := range verdict.Reasons {
		needs.Reasons = append(needs.Reasons, r.Text)
	}
	return needs
}

// startGuard watches, until ctx ends, what is published on this node.
func (n *node) startGuard(ctx context.Context) error {
	guard, err := preview.NewGuard(preview.GuardConfig{
		Source: n.traffic, Book: n.book, Log: n.log,
		Superseded: func(err error) bool { return errors.Is(err, rulebook.ErrConflict) },
	})
	if err != nil {
		return err
	}
	n.guard = guard
	n.running.Go(func() { _ = guard.Run(ctx) }) // ends with ctx's own error
	return nil
}

// published hands what somebody has published on this node to the guard.
func (n *node) published(before, after *rulebook.Set) {
	if after.Kind != rulebook.KindGuard {
		n.guard.Watch(before.Compiled(), after.Compiled(), after.Time)
	}
}
