package fanout

import (
	"context"
	"fmt"
	"time"

	"liveroom/protocol"
)

// RecentEvent is a danmaku that was published lately.
type RecentEvent struct {
	Time  time.Time // when the stream took it
	Event []byte    // as [Fabric.Publish] was given it
}

// Recent returns the room's danmaku, oldest first: the newest limit of them (at least 1), within [Config.RecentAge] by the
// store's clock alone and [Config.RecentPerRoom]. The stream listens beside the path, so a danmaku that was delivered a
// moment ago may be missing.
func (f *Fabric) Recent(ctx context.Context, room string, limit int) ([]RecentEvent, error) {
	if limit < 1 {
		return nil, fmt.Errorf("recent danmaku of room %s: limit %d is less than 1", room, limit)
	}
	got, err := f.read(ctx, recentStream, directGet{
		Next: roomSubject(room, protocol.ClassDanmaku.String()), Batch: f.cfg.RecentPerRoom, Seq: 1,
	})
	if err != nil {
		return nil, err
	}
	got = got[max(0, len(got)-limit):]
	events := make([]RecentEvent, len(got))
	for i, r := range got {
		events[i] = RecentEvent{r.Time, r.Data}
	}
	return events, nil
}
