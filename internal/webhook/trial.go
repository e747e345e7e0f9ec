package webhook

import (
	"context"
	"fmt"
	"time"

	"liveroom/internal/hook"
	"liveroom/internal/journal"
)

// Sample asks a platform to take events that nobody caused, twice, as after a crash, and returns what is wrong with the answer.
func Sample(ctx context.Context, to Platform, name string) error {
	now := time.Now()
	var events []journal.Entry
	for i, kind := range []journal.Kind{journal.Announcement, journal.Danmaku} {
		events = append(events, journal.Entry{
			ID: fmt.Sprintf("sample-%d-%d", now.UnixNano(), i), Kind: kind, Room: "hook-test", Time: now.UnixMilli(), Event: fmt.Appendf(nil, `{"ev":%q,"sample":true}`, kind),
		})
	}
	for range 2 {
		var receipt Receipt
		if err := call(ctx, to, name, events, false, &receipt); err != nil {
			return err
		}
	}
	return nil
}

var _ Platform = (*hook.Endpoint)(nil)
