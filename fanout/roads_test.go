package fanout

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// guardedServer starts a NATS server whose one user may not publish on and not hear these. Reload changes that.
func guardedServer(t *testing.T, publish, hear []string) (s *server.Server, url string, reload func(publish, hear []string)) {
	t.Helper()
	var o server.Options
	users := func(publish, hear []string) []*server.User {
		return []*server.User{{Username: "node", Password: "secret", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Deny: publish}, Subscribe: &server.SubjectPermission{Deny: hear},
		}}}
	}
	s = natsServerWith(t, func(of *server.Options) { of.Users = users(publish, hear); o = *of })
	o.StoreDir = s.StoreDir()
	if i := strings.LastIndex(o.StoreDir, "/jetstream"); i > 0 {
		o.StoreDir = o.StoreDir[:i]
	}
	reload = func(publish, hear []string) {
		t.Helper()
		next := o
		next.Users = users(publish, hear)
		if err := s.ReloadOptions(&next); err != nil {
			t.Fatal(err)
		}
	}
	return s, "nats://node:secret@" + s.Addr().String(), reload
}

// What is forbidden at the start is a refusal to start that names it.
func TestForbiddenAtTheStart(t *testing.T) {
	for _, tc := range []struct {
		publish, hear []string
		want          string
	}{
		{publish: []string{"lr.room.*.danmaku"}, want: "publish lr.room.*.danmaku"},
		{publish: []string{"lr.room.*.control"}, want: "publish lr.room.*.control"},
		{publish: []string{"lr.gift.>"}, want: "publish lr.gift.*"},
		{publish: []string{"lr.likes.*"}, want: "publish lr.likes.*"},
		{publish: []string{"lr.rules"}, want: "publish lr.rules"},
		{publish: []string{"$KV.liveroom_revoked.>"}, want: "publish $KV.liveroom_revoked.*"},
		{publish: []string{"$JS.API.STREAM.CREATE.>"}, want: "publish $JS.API.STREAM.CREATE.>"},
		{publish: []string{"lr.node.*.presence"}, want: "publish lr.node.*.presence"},
		{hear: []string{"lr.room.>"}, want: "subscribe lr.room.*.danmaku"},
		{hear: []string{"lr.room.*.gift"}, want: "subscribe lr.room.*.gift"},
		{hear: []string{"lr.rulesnews"}, want: "subscribe lr.rulesnews"},
	} {
		_, url, _ := guardedServer(t, tc.publish, tc.hear)
		began := time.Now()
		f, err := Open(testContext(t), Config{NodeID: "n1", URLs: []string{url}, Shared: true}, slog.New(slog.DiscardHandler))
		if err == nil {
			closeNow(t, f)
			t.Errorf("without %s: opened", tc.want)
			continue
		}
		if !errors.Is(err, ErrForbidden) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("without %s: %v", tc.want, err)
		}
		t.Logf("after %v: %v", time.Since(began), err)
	}
}

// What is forbidden later, by a reload of the server, is noticed without anybody's message, told by what is published then, and
// over when it is allowed again; in the log it is one line, however many there were.
func TestForbiddenByAReload(t *testing.T) {
	_, url, reload := guardedServer(t, nil, nil)
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
		eventually(t, what, func() bool { return f.Health().Err() == nil && f.PublishDanmaku("demo", []byte(what)) == nil })
		for got := receive(t, l.events); got != "danmaku "+what; got = receive(t, l.events) {
		}
	}
	heardAgain("at the start")

	reload([]string{"lr.room.*.danmaku", "lr.gift.*"}, nil)
	eventually(t, "it is noticed", func() bool { return slices.Contains(f.Forbidden(), "publish lr.room.*.danmaku") })
	for i := range 200 {
		if err := f.PublishDanmaku("demo", fmt.Append(nil, i)); !errors.Is(err, ErrForbidden) {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	if err := f.Health().Err(); !errors.Is(err, ErrForbidden) || !strings.Contains(err.Error(), "lr.room.*.danmaku") {
		t.Errorf("health is %v", err)
	}
	eventually(t, "so are gifts", func() bool { return slices.Contains(f.Forbidden(), "publish lr.gift.*") })
	if _, err := f.StoreGift(testContext(t), "demo", "u", "c", []byte("rose")); !errors.Is(err, ErrRefused) || !errors.Is(err, ErrForbidden) {
		t.Errorf("a gift: %v", err)
	}
	if n := strings.Count(out.String(), "nats forbids"); n != 1 {
		t.Errorf("%d lines in the log: %s", n, out.String())
	}
	reload(nil, nil)
	heardAgain("allowed again")

	reload(nil, []string{"lr.room.>"})
	eventually(t, "that nothing is heard is noticed", func() bool { return slices.Contains(f.Forbidden(), "subscribe lr.room.*.>") })
	reload(nil, nil)
	heardAgain("heard again")
}
