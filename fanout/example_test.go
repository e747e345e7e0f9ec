package fanout_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"liveroom/fanout"
	"liveroom/protocol"
)

// printer is a room that prints what it is told.
type printer struct{ done chan struct{} }

func (p printer) Message(c protocol.Class, event []byte) {
	fmt.Printf("%s %s\n", c, event)
	p.done <- struct{}{}
}
func (p printer) Gift(g protocol.StoredGift) {
	fmt.Printf("gift %d after %d: %s\n", g.Seq, g.Prev, g.Event)
	p.done <- struct{}{}
}
func (p printer) Likes(total int64)           { fmt.Println("likes", total) }
func (p printer) Act(a protocol.StoredAct)    { fmt.Printf("act %s\n", a.Value) }
func (p printer) Settings(b []byte, _ uint64) { fmt.Printf("settings %s\n", b) }

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "liveroom")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	// No URLs: the NATS server runs in this process and needs nothing but a directory.
	f, err := fanout.Open(ctx, fanout.Config{NodeID: "n1", DataDir: dir}, slog.Default())
	if err != nil {
		panic(err)
	}
	defer func() { _ = f.Close(ctx) }()

	room := printer{make(chan struct{}, 1)}
	sub, err := f.Feeds.Subscribe(ctx, "demo", room)
	if err != nil {
		panic(err)
	}
	defer sub.Close()

	if err := f.Feeds.Publish(protocol.ClassDanmaku, "demo", []byte(`{"ev":"danmaku","text":"hello"}`)); err != nil {
		panic(err)
	}
	<-room.done // danmaku and gifts have no order between one another
	// On disk when it returns; the same id again has the same sequence and no effect.
	for range 2 {
		receipt, err := f.Store.Gifts.StoreGift(ctx, "demo", "u1", "c8", []byte(`{"ev":"gift","gift":"rose"}`))
		if err != nil {
			panic(err)
		}
		if receipt.Duplicate {
			fmt.Println("stored before, as", receipt.Seq)
			continue
		}
		<-room.done
	}
	// Output:
	// danmaku {"ev":"danmaku","text":"hello"}
	// gift 1 after 0: {"ev":"gift","gift":"rose"}
	// stored before, as 1
}
