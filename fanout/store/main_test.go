package store

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"liveroom/fanout/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wait bounds everything that a test waits for.
const wait = 45 * time.Second

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 3*wait)
	t.Cleanup(cancel)
	return ctx
}

// alone is a link to a server of its own.
func alone(t testing.TB, dir string) *link.Link {
	t.Helper()
	l, err := link.Open(testContext(t), link.Config{
		NodeID: "n1", DataDir: dir, DiskMost: 2 * DiskMost(4<<30, 4<<30), MemoryMost: 2 * MemoryMost, // trials come on top
		StoreTimeout: 2 * time.Second, ProbeTimeout: wait, FollowEvery: time.Second, Metrics: link.NewMetrics(nil),
	}, slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err == nil {
		err = l.Start(link.Hooks{Returned: func() {}})
	}
	t.Cleanup(l.Shut)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// told keeps what rooms are told.
type told struct {
	likes  chan int64
	behind func(room string, revision uint64) bool
}

func newTold() *told {
	return &told{make(chan int64, 1<<10), func(string, uint64) bool { return false }}
}

func (r *told) SayLikes(_ string, total int64)       { r.likes <- total }
func (r *told) Behind(room string, v link.Seen) bool { return r.behind(room, v.Revision) }
func (*told) Say(string, link.Seen)                  {}
func (*told) SayGift(string, uint64, bool)           {}
func (*told) SweepSoon()                             {}

// open opens what a node keeps, and closes it at the end of the test. stop closes it before.
func open(t testing.TB, l *link.Link, dir, id string) (s *Store, rooms *told, stop func()) {
	t.Helper()
	return openWith(t, l, dir, id, Danmaku{Age: time.Hour, Bytes: 64 << 20})
}

func openWith(t testing.TB, l *link.Link, dir, id string, danmaku Danmaku) (s *Store, rooms *told, stop func()) {
	t.Helper()
	s, err := Open(testContext(t), l, Config{
		NodeID: id, DataDir: dir, GiftBytes: 4 << 30, GiftAge: 30 * 24 * time.Hour, Danmaku: danmaku, GiftRetry: 10 * time.Minute, LikesGather: 5 * time.Millisecond, StoreTimeout: 2 * time.Second,
		MeasureEvery: time.Second, GrowEvery: time.Minute, Metrics: NewMetrics(nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	rooms = newTold()
	ctx, cancel := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	if err := s.Start(ctx, testContext(t), &loops, rooms); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		cancel()
		loops.Wait()
		if err := s.Likes.Flush(context.Background()); err != nil {
			t.Error("flush:", err)
		}
		s.Close()
	})
	t.Cleanup(stop)
	return s, rooms, stop
}

func receive[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(wait):
		t.Fatal("nothing arrives")
		panic("unreachable")
	}
}

// lose takes the messages of a subject from a stream, as a crash or an older copy does.
func lose(t *testing.T, l *link.Link, stream, subject string) {
	t.Helper()
	s, err := l.JS.Stream(testContext(t), stream)
	if err == nil {
		err = s.Purge(testContext(t), jetstream.WithPurgeSubject(subject))
	}
	if err != nil {
		t.Fatal(err)
	}
}
