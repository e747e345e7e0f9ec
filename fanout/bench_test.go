package fanout

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"liveroom/protocol"
)

// counter is a Handler that counts danmaku and says when it has as many as it is told.
type counter struct {
	seen atomic.Int64
	want atomic.Int64
	done chan struct{}
}

func (c *counter) Message(protocol.Class, []byte) {
	if c.seen.Add(1) == c.want.Load() {
		c.done <- struct{}{}
	}
}
func (*counter) Gift(protocol.StoredGift) {}
func (*counter) Likes(int64)              {}
func (*counter) Settings([]byte, uint64)  {}
func (*counter) Act(protocol.StoredAct)   {}

const benchEvent = `{"ev":"danmaku","mid":"01J9Z3","user":{"id":"u1","name":"Ann"},"text":"hello hello hello he","ts":1790000000000}`

func benchRoom(b *testing.B) (*Fabric, *counter) {
	f := open(b, Config{NodeID: "n1", DataDir: b.TempDir()})
	c := &counter{done: make(chan struct{}, 1)}
	s, err := f.Feeds.Subscribe(testContext(b), "demo", c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	return f, c
}

// BenchmarkDanmakuLatency is one danmaku at a time, from the call to the handler.
func BenchmarkDanmakuLatency(b *testing.B) {
	f, c := benchRoom(b)
	for b.Loop() {
		c.want.Add(1)
		if err := f.Feeds.Publish(protocol.ClassDanmaku, "demo", []byte(benchEvent)); err != nil {
			b.Fatal(err)
		}
		<-c.done
	}
}

// BenchmarkDanmakuThroughput publishes in bursts of 1000 and waits for the last; one op is one danmaku.
func BenchmarkDanmakuThroughput(b *testing.B) {
	f, c := benchRoom(b)
	const burst = 1000
	sent := 0
	for b.Loop() {
		if sent%burst == 0 {
			c.want.Store(int64(sent + burst))
		}
		sent++
		if err := f.Feeds.Publish(protocol.ClassDanmaku, "demo", []byte(benchEvent)); err != nil {
			b.Fatal(err)
		}
		if sent%burst == 0 {
			<-c.done
		}
	}
	b.StopTimer()
	c.want.Store(int64(sent))
	eventually(b, "all arrive", func() bool { return c.seen.Load() == int64(sent) })
}

func BenchmarkStoreGift(b *testing.B) {
	for _, parallel := range []int{1, 16} {
		b.Run(fmt.Sprint("senders=", parallel), func(b *testing.B) {
			f, _ := benchRoom(b)
			ctx := testContext(b)
			var n atomic.Int64
			b.SetParallelism(parallel)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := f.Store.Gifts.StoreGift(ctx, "demo", "u1", fmt.Sprint("c", n.Add(1)), []byte(benchEvent)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkSubscribe is the opening and closing of a room, with the reading of its state.
func BenchmarkSubscribe(b *testing.B) {
	f := open(b, Config{NodeID: "n1", DataDir: b.TempDir()})
	ctx, c := testContext(b), &counter{}
	for b.Loop() {
		s, err := f.Feeds.Subscribe(ctx, "demo", c)
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

// BenchmarkRecent reads the last 200 danmaku of one room among 500 as busy ones.
func BenchmarkRecent(b *testing.B) {
	f := open(b, Config{NodeID: "n1", DataDir: b.TempDir()})
	ctx := testContext(b)
	for range 200 {
		for r := range 500 {
			if err := f.Feeds.Publish(protocol.ClassDanmaku, fmt.Sprint("room", r), []byte(benchEvent)); err != nil {
				b.Fatal(err)
			}
		}
	}
	eventually(b, "the stream has all", func() bool {
		got, err := f.Store.Recent.Recent(ctx, "room499", 200)
		return err == nil && len(got) == 200
	})
	for b.Loop() {
		if got, err := f.Store.Recent.Recent(ctx, "room250", 200); err != nil || len(got) != 200 {
			b.Fatal(len(got), err)
		}
	}
}

// BenchmarkFlushLikes stores and announces the likes of 1000 rooms; one op is all of them.
func BenchmarkFlushLikes(b *testing.B) {
	f := open(b, Config{NodeID: "n1", DataDir: b.TempDir(), LikesGather: time.Hour})
	ctx := testContext(b)
	for b.Loop() {
		for r := range 1000 {
			if err := f.Store.Likes.AddLikes(fmt.Sprint("room", r), 3); err != nil {
				b.Fatal(err)
			}
		}
		if err := f.Store.Likes.Flush(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGifts reads the last 10 of one room's gifts, as a resume does, in a ledger of 2000 gifts of 100 rooms.
func BenchmarkGifts(b *testing.B) {
	f := open(b, Config{NodeID: "n1", DataDir: b.TempDir()})
	ctx := testContext(b)
	var seqs []uint64
	for i := range 2000 {
		r := storeGift(b, f, fmt.Sprint("room", i%100), "u", fmt.Sprint(i), benchEvent)
		if i%100 == 50 {
			seqs = append(seqs, r.Seq)
		}
	}
	after := seqs[len(seqs)-11]
	for b.Loop() {
		if got, err := f.Store.Gifts.Gifts(ctx, "room50", after, 100); err != nil || len(got) != 10 || got[0].Prev != after {
			b.Fatal(len(got), err)
		}
	}
}
