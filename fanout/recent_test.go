package fanout

import (
	"fmt"
	"testing"

	"liveroom/protocol"
)

func TestRecentIsBoundedPerRoom(t *testing.T) {
	s := natsServer(t)
	n1, n2 := node(t, s, "n1"), open(t, Config{NodeID: "n2", URLs: []string{s.ClientURL()}, Shared: true, RecentPerRoom: 5})
	ctx := testContext(t)
	for i := range 8 {
		for _, room := range []string{"demo", "other"} {
			if err := n1.Publish(protocol.ClassDanmaku, room, fmt.Append(nil, room, i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := n1.Publish(protocol.ClassControl, "demo", []byte("not kept")); err != nil {
			t.Fatal(err)
		}
	}
	var got []RecentEvent
	eventually(t, "the stream has the last", func() bool {
		var err error
		got, err = n2.Recent(ctx, "demo", 100)
		return err == nil && len(got) > 0 && string(got[len(got)-1].Event) == "demo7"
	})
	if len(got) != 5 || string(got[0].Event) != "demo3" {
		t.Errorf("%d events from %s, want 5 from demo3", len(got), got[0].Event)
	}
	if newest, err := n2.Recent(ctx, "demo", 2); err != nil || len(newest) != 2 || string(newest[0].Event) != "demo6" {
		t.Errorf("newest two: %q, %v", newest, err)
	}
	if got, err := n2.Recent(ctx, "empty", 100); err != nil || len(got) != 0 {
		t.Errorf("empty room: %q, %v", got, err)
	}
	if _, err := n2.Recent(ctx, "demo", 0); err == nil {
		t.Error("limit 0 passes")
	}
}
