package fanout

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
	"liveroom/fanout/store"
	"liveroom/protocol"
)

// BenchmarkTakeOut tells what it costs to find and overwrite a user's hundred messages among 200,000 of a log, in all rooms.
func BenchmarkTakeOut(b *testing.B) {
	f := open(b, Config{NodeID: "n1", DataDir: b.TempDir()})
	now := time.Now().UnixMilli()
	fill := func(user string, n int) {
		var last jetstream.PubAckFuture
		for i := range n {
			event := protocol.AppendDanmaku(nil, protocol.Danmaku{MID: fmt.Sprintf("%s%d", user, i), User: protocol.User{ID: user, Name: "Nick of " + user}, Text: fmt.Sprintf("what %s has to say for the %dth time", user, i), TS: now})
			var err error
			if last, err = f.Link.JS.PublishAsync(link.SaidPrefix+fmt.Sprintf("room%d", i%50), event); err != nil {
				b.Fatal(err)
			}
			if i%1000 == 999 {
				<-f.Link.JS.PublishAsyncComplete()
			}
		}
		<-last.Ok()
	}
	for b.Loop() {
		b.StopTimer()
		for range 10 {
			fill("bob", 20_000)
			fill("ann", 10)
		}
		b.StartTimer()
		n, err := f.Store.Erasures.TakeOut(b.Context(), []store.Erasure{{User: "ann", Until: now}})
		if err != nil || n != 100 {
			b.Fatal(n, err)
		}
	}
}
