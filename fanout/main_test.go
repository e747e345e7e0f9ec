package fanout

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"liveroom/fanout/feed"
	"liveroom/protocol"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		victim(dir) // a process of kill_test.go; it never returns
	}
	if dir := os.Getenv(crowdDir); dir != "" {
		crowd(dir) // a process of powercut_linux_test.go; it never returns
	}
	if spec := os.Getenv(serverSpec); spec != "" {
		serverProcess(spec) // a process of cluster_test.go; it never returns
	}
	if dir := os.Getenv(guardedDir); dir != "" {
		guardedProcess(dir) // a process of roads_test.go; it never returns
	}
	// A stream that nats-server can't recover leaves the loops of its store behind (TestADamagedStreamIsNotMadeAnewOverWhatIsLeft).
	const store = "github.com/nats-io/nats-server/v2/server"
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(store+".(*fileStore).flushStreamStateLoop"), goleak.IgnoreAnyFunction(store+"/ats.Register.func1"))
}

// wait bounds everything that a test waits for.
const wait = 45 * time.Second

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 3*wait)
	t.Cleanup(cancel)
	return ctx
}

func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// open opens a node and closes it at the end of the test.
func open(t testing.TB, cfg Config) *Fabric {
	t.Helper()
	f := openUnclosed(t, cfg)
	t.Cleanup(func() { closeNow(t, f) })
	return f
}

func openUnclosed(t testing.TB, cfg Config) *Fabric {
	t.Helper()
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.NewRegistry()
	}
	if cfg.StoreTimeout == 0 {
		cfg.StoreTimeout = 10 * time.Second // two are not enough for a process that gets a twentieth of a processor
	}
	f, err := Open(testContext(t), cfg, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// counted is the value of one of the node's counters or gauges, with at most one label of that value.
func counted(t testing.TB, f *Fabric, name, label string) float64 {
	t.Helper()
	families, err := f.cfg.Metrics.(*prometheus.Registry).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			if label == "" || m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no metric %s %s", name, label)
	return 0
}

func closeNow(t testing.TB, f *Fabric) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if err := f.Close(ctx); err != nil {
		t.Error("close:", err)
	}
}

// natsServer starts a NATS server with a port of its own.
func natsServer(t testing.TB) *server.Server {
	t.Helper()
	return natsServerAt(t, t.TempDir(), server.RANDOM_PORT)
}

func natsServerAt(t testing.TB, dir string, port int) *server.Server {
	t.Helper()
	return natsServerWith(t, func(o *server.Options) { o.StoreDir, o.Port = dir, port })
}

// natsServerWith starts one with other options than these.
func natsServerWith(t testing.TB, change func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, NoSigs: true, NoLog: true,
		JetStreamMaxStore: 16 << 30, JetStreamMaxMemory: 1 << 30, SyncAlways: true,
	}
	if change != nil {
		change(o)
	}
	if o.StoreDir == "" {
		o.StoreDir = t.TempDir()
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(wait) {
		t.Fatal("nats server is not ready")
	}
	t.Cleanup(func() { stopNats(s) })
	return s
}

func stopNats(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// listener is a Handler that keeps what it is told, in order.
type listener struct {
	events   chan string // "danmaku …", "control …"
	gifts    chan protocol.StoredGift
	likes    chan int64
	settings chan setting
	acts     chan protocol.StoredAct
}

type setting struct {
	payload  string
	revision uint64
}

func newListener() *listener {
	return &listener{
		make(chan string, 1<<14), make(chan protocol.StoredGift, 1<<14), make(chan int64, 1<<10), make(chan setting, 1<<10), make(chan protocol.StoredAct, 1<<10),
	}
}

func (l *listener) Message(c protocol.Class, event []byte) {
	l.events <- c.String() + " " + string(event)
}
func (l *listener) Gift(g protocol.StoredGift)    { l.gifts <- g }
func (l *listener) Likes(total int64)             { l.likes <- total }
func (l *listener) Act(a protocol.StoredAct)      { l.acts <- a }
func (l *listener) Settings(b []byte, rev uint64) { l.settings <- setting{string(b), rev} }

var _ feed.Handler = (*listener)(nil)

// subscribe joins a room with a new listener.
func subscribe(t testing.TB, f *Fabric, room string) (*listener, *feed.Subscription) {
	t.Helper()
	l := newListener()
	s, err := f.Feeds.Subscribe(testContext(t), room, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return l, s
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

// eventually asks until the condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(wait); !holds(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("never:", what)
		}
	}
}

func storeGift(t testing.TB, f *Fabric, room, user, id, event string) protocol.Receipt {
	t.Helper()
	r, err := f.Store.Gifts.StoreGift(testContext(t), room, user, id, []byte(event))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
