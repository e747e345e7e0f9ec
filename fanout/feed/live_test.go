package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"liveroom/fanout/link"
	"liveroom/protocol"
)

// wait bounds everything that a test waits for.
const wait = 45 * time.Second

// alone is a bus on a server of its own, where so many messages wait for one room's reader.
func alone(t *testing.T, pending int) *Live {
	t.Helper()
	l, err := link.Open(t.Context(), link.Config{
		NodeID: "n1", DataDir: t.TempDir(), DiskMost: 1 << 30, MemoryMost: 1 << 20,
		StoreTimeout: 2 * time.Second, ProbeTimeout: wait, FollowEvery: time.Second, Metrics: link.NewMetrics(nil),
	}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	t.Cleanup(l.Shut)
	if err != nil {
		t.Fatal(err)
	}
	b := NewLive(l, pending, nil)
	if err := l.Start(link.Hooks{Returned: func() {}, Slow: b.Slow}); err != nil {
		t.Fatal(err)
	}
	return b
}

// What a slow reader loses is counted exactly, and the room is told.
func TestWhatIsLostIsCounted(t *testing.T) {
	const pending, sent = 10, 100
	b := alone(t, pending)
	var came atomic.Int64 // over the same connection, whatever it is
	if _, err := b.link.Live.Subscribe(link.RoomSubject("demo", ">"), func(*nats.Msg) { came.Add(1) }); err != nil {
		t.Fatal(err)
	}
	hold, busy, lost := make(chan struct{}), make(chan struct{}, sent), make(chan struct{}, sent)
	var heard atomic.Int64
	stop, err := b.Subscribe("demo", func(link.Kind, []byte, nats.Header) {
		busy <- struct{}{}
		<-hold
		heard.Add(1)
	}, func() { lost <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	for i := range sent {
		if err := b.Publish("demo", protocol.ClassDanmaku.String(), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			<-busy // from here on the queue frees no place
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	if err := b.Flush(ctx); err != nil { // all have reached the client
		t.Fatal(err)
	}
	select {
	case <-lost:
	case <-time.After(wait):
		t.Fatal("nobody is told")
	}
	close(hold)
	for deadline := time.Now().Add(wait); heard.Load()+int64(testutil.ToFloat64(b.dropped)) != came.Load(); runtime.Gosched() {
		if b.CountDropped(); time.Now().After(deadline) {
			t.Fatalf("%d heard, %v counted as dropped, of %d that came", heard.Load(), testutil.ToFloat64(b.dropped), came.Load())
		}
	}
	if heard.Load() > pending+1 {
		t.Errorf("%d heard, where %d wait at most", heard.Load(), pending)
	}
	stop()
	stop() // nothing is left to be counted
	if n := came.Load(); n != sent {
		t.Errorf("%d of %d came", n, sent)
	}
	if len(b.ears) != 0 {
		t.Errorf("%d ears left", len(b.ears))
	}
}

func TestNothingIsKeptForLater(t *testing.T) {
	b := alone(t, 10)
	b.link.Live.Close()
	if err := b.Publish("demo", protocol.ClassDanmaku.String(), nil); !errors.Is(err, link.ErrDisconnected) {
		t.Error(err)
	}
}
