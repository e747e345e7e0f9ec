package webhook

import (
	"context"
	"fmt"
	"time"

	"liveroom/internal/hook"
	"liveroom/internal/journal"
)

// Try asks a platform to take events that nobody caused, twice, as after a crash. It reports whether nothing was wrong with the answers.
func Try(ctx context.Context, t *hook.Trial, name string) bool {
	if !t.Signatures(ctx) {
		return false
	}
	now := time.Now()
	var events []journal.Entry
	for i, kind := range []journal.Kind{journal.Announcement, journal.Danmaku} {
		events = append(events, journal.Entry{
			ID: fmt.Sprintf("sample-%s-%d", t.ID, i), Kind: kind, Room: "hook-test", Time: now.UnixMilli(), Event: fmt.Appendf(nil, `{"ev":%q,"sample":true}`, kind),
		})
	}
	for _, step := range []string{"events are taken", "and again, as after a crash"} {
		var receipt Receipt
		err := call(ctx, t.Platform, name, events, false, &receipt)
		if err == nil && len(receipt.Refused) > 0 {
			err = fmt.Errorf("%s is refused: %s", receipt.Refused[0].ID, clip(receipt.Refused[0].Why))
		}
		t.Step(step, err)
	}
	return t.Good()
}

var _ Platform = (*hook.Endpoint)(nil)
