package fanout

import (
	"fmt"
	"testing"

	"liveroom/protocol"
)

func TestRecentIsBoundedPerRoom(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	n1, n2 := node(t, s, "n1"), node(t, s, "n2")
	ctx := testContext(t)
	const kept, said = 200, 208
	for i := range said {
		for _, room := range []string{"demo", "other"} {
			if err := n1.Feeds.Publish(protocol.ClassDanmaku, room, fmt.Append(nil, room, i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := n1.Feeds.Publish(protocol.ClassControl, "demo", []byte("not kept")); err != nil {
			t.Fatal(err)
		}
	}
	var got [][]byte
	eventually(t, "the stream has the last", func() bool {
		var err error
		got, err = n2.Store.Recent.Recent(ctx, "demo", 1000)
		return err == nil && len(got) > 0 && string(got[len(got)-1]) == fmt.Sprint("demo", said-1)
	})
	if len(got) != kept || string(got[0]) != fmt.Sprint("demo", said-kept) {
		t.Errorf("%d events from %s, want %d", len(got), got[0], kept)
	}
	if newest, err := n2.Store.Recent.Recent(ctx, "demo", 2); err != nil || len(newest) != 2 || string(newest[0]) != fmt.Sprint("demo", said-2) {
		t.Errorf("newest two: %q, %v", newest, err)
	}
	if got, err := n2.Store.Recent.Recent(ctx, "empty", 100); err != nil || len(got) != 0 {
		t.Errorf("empty room: %q, %v", got, err)
	}
	if _, err := n2.Store.Recent.Recent(ctx, "demo", 0); err == nil {
		t.Error("limit 0 passes")
	}
}
