package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	"liveroom/internal/api"
	"liveroom/internal/preview"
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
