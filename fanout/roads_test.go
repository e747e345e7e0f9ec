package fanout

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"liveroom/protocol"

	"github.com/nats-io/nats-server/v2/server"

	"liveroom/fanout/link"
)

// guardedDir tells a process of this test to be a NATS server with its store there. It is one of its own, because nats-server reads
// its options without a lock while a reload writes them.
const guardedDir = "FANOUT_TEST_GUARDED"

// denied is what its one user may not publish on and not hear.
type denied struct{ Publish, Hear []string }

func guardedOptions(dir string, d denied) *server.Options {
	return &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true,
		JetStreamMaxStore: 16 << 30, JetStreamMaxMemory: 1 << 30,
		Users: []*server.User{{Username: "node", Password: "secret", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Deny: d.Publish}, Subscribe: &server.SubjectPermission{Deny: d.Hear},
		}}},
	}
}

// guardedProcess says its address, and reloads with each line that it is told. It never returns.
func guardedProcess(dir string) {
	s, err := server.NewServer(guardedOptions(dir, denied{}))
	if err != nil {
		panic(err)
	}
	s.Start()
	if !s.ReadyForConnections(wait) {
		panic("not ready")
	}
	fmt.Println(s.Addr())
	for lines := json.NewDecoder(os.Stdin); ; {
		var d denied
		if err := lines.Decode(&d); err != nil {
			os.Exit(0) // the test's process has ended
		}
		if err := s.ReloadOptions(guardedOptions(dir, d)); err != nil {
			panic(err)
		}
	}
}

// guardedServer starts the process and returns how to reach it, and how to reload it.
func guardedServer(t *testing.T) (url string, reload func(denied)) {
	t.Helper()
	_, in, at := again(t, guardedDir+"="+t.TempDir())
	tell := json.NewEncoder(in)
	return "nats://node:secret@" + at, func(d denied) {
		t.Helper()
		if err := tell.Encode(d); err != nil {
			t.Fatal(err)
		}
	}
}

// What is forbidden at the start is a refusal to start that names it.
func TestForbiddenAtTheStart(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		publish, hear []string
		want          string
	}{
		{publish: []string{"lr.held.>"}, want: "publish lr.held.*.*"},
		{publish: []string{"lr.said.*"}, want: "publish lr.said.*"},
		{publish: []string{"lr.room.*.danmaku"}, want: "publish lr.room.*.danmaku"},
		{publish: []string{"lr.room.*.control"}, want: "publish lr.room.*.control"},
		{publish: []string{"lr.gift.>"}, want: "publish lr.gift.*"},
		{publish: []string{"lr.likes.*"}, want: "publish lr.likes.*"},
		{publish: []string{"lr.rules"}, want: "publish lr.rules"},
		{publish: []string{"lr.catalogue"}, want: "publish lr.catalogue"},
		{publish: []string{"$KV.liveroom_revoked.>"}, want: "publish $KV.liveroom_revoked.*"},
		{publish: []string{"$JS.API.STREAM.CREATE.>"}, want: "publish $JS.API.STREAM.CREATE.>"},
		{publish: []string{"lr.node.*.presence"}, want: "publish lr.node.*.presence"},
		{hear: []string{"lr.room.>"}, want: "subscribe lr.room.*.danmaku"},
		{hear: []string{"lr.room.*.gift"}, want: "subscribe lr.room.*.gift"},
		{hear: []string{"lr.rulesnews"}, want: "subscribe lr.rulesnews"},
	} {
		s := natsServerWith(t, func(o *server.Options) { o.Users = guardedOptions("", denied{tc.publish, tc.hear}).Users })
		url := "nats://node:secret@" + s.Addr().String()
		began := time.Now()
		f, err := Open(testContext(t), Config{NodeID: "n1", URLs: []string{url}, Shared: true}, slog.New(slog.DiscardHandler))
		if err == nil {
			closeNow(t, f)
			t.Errorf("without %s: opened", tc.want)
			continue
		}
		if !errors.Is(err, link.ErrForbidden) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("without %s: %v", tc.want, err)
		}
		t.Logf("after %v: %v", time.Since(began), err)
	}
}

// What is forbidden later, by a reload of the server, is noticed without anybody's message, told by what is published then, and
// over when it is allowed again; in the log it is one line, however many there were.
func TestForbiddenByAReload(t *testing.T) {
	t.Parallel()
	url, reload := guardedServer(t)
	var out syncBuffer
	f, err := Open(testContext(t), Config{
		NodeID: "n1", URLs: []string{url}, Shared: true, ProbeEvery: 20 * time.Millisecond, ProbeTimeout: 2 * time.Second,
		SweepEvery: 100 * time.Millisecond,
	}, slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer closeNow(t, f)
	l, _ := subscribe(t, f, "demo")
	heardAgain := func(what string) {
		t.Helper()
		eventually(t, what, func() bool {
			return f.Health() == nil && f.Feeds.Publish(protocol.ClassDanmaku, "demo", []byte(what)) == nil
		})
		for got := receive(t, l.events); got != "danmaku "+what; got = receive(t, l.events) {
		}
	}
	heardAgain("at the start")

	reload(denied{Publish: []string{"lr.room.*.danmaku", "lr.gift.*"}})
	eventually(t, "it is noticed", func() bool { return forbids(f, "publish lr.room.*.danmaku") })
	for i := range 200 {
		if err := f.Feeds.Publish(protocol.ClassDanmaku, "demo", fmt.Append(nil, i)); !errors.Is(err, link.ErrForbidden) {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	if err := f.Health(); !errors.Is(err, link.ErrForbidden) || !strings.Contains(err.Error(), "lr.room.*.danmaku") {
		t.Errorf("health is %v", err)
	}
	eventually(t, "so are gifts", func() bool { return forbids(f, "publish lr.gift.*") })
	if _, err := f.Store.Gifts.StoreGift(testContext(t), "demo", "u", "c", []byte("rose")); !errors.Is(err, link.ErrRefused) || !errors.Is(err, link.ErrForbidden) {
		t.Errorf("a gift: %v", err)
	}
	if n := strings.Count(out.String(), "nats forbids"); n != 1 {
		t.Errorf("%d lines in the log: %s", n, out.String())
	}
	reload(denied{})
	heardAgain("allowed again")

	reload(denied{Hear: []string{"lr.room.>"}})
	eventually(t, "that nothing is heard is noticed", func() bool { return forbids(f, "subscribe lr.room.*.>") })
	reload(denied{})
	heardAgain("heard again")
}

// A node that took long to open has said nothing yet, so silence proves nothing.
func TestASlowOpeningForbidsNothing(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	p := newProxy(t, s.ClientURL())
	cfg := nodeConfig(s, "n1")
	cfg.URLs, cfg.ProbeTimeout, cfg.ProbeEvery = []string{p.url()}, time.Second, 100*time.Millisecond
	p.hold()
	slow := time.AfterFunc(cfg.ProbeTimeout*5/4, p.release)
	defer slow.Stop()
	log := &syncBuffer{}
	f, err := Open(testContext(t), cfg, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer closeNow(t, f)
	for _, kind := range []link.Kind{protocol.ClassDanmaku.String(), protocol.ClassControl.String()} {
		heard, err := f.Link.Live.SubscribeSync("lr.room.==n1." + kind)
		if err == nil {
			_, err = heard.NextMsg(wait)
			_ = heard.Unsubscribe() // a connection does not close before all is read
		}
		if err != nil {
			t.Fatal("the probe is not heard:", err)
		}
	}
	if strings.Contains(log.String(), "forbids") {
		t.Errorf("a road was called forbidden: %s", log.String())
	}
}

// forbids reports whether that is known to be forbidden.
func forbids(f *Fabric, what string) bool {
	err := f.Link.Allowed()
	return err != nil && strings.Contains(err.Error(), what)
}
