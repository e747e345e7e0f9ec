package fanout

import (
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
	"liveroom/fanout/store"
)

// A server that was stopped, lost its disk, and is started empty: the nodes that lived through it go on as if nothing
// had been lost but the gifts of before. Totals do not fall, nothing new is taken for old.
func TestStoreComesBackEmpty(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	port := s.Addr().(*net.TCPAddr).Port
	cfg := func(id string) Config {
		c := nodeConfig(s, id)
		c.LikesGather, c.FollowEvery, c.StoreTimeout = 5*time.Millisecond, 20*time.Millisecond, time.Second
		return c
	}
	n1, n2 := open(t, cfg("n1")), open(t, cfg("n2"))
	ctx := testContext(t)
	l1, s1 := subscribe(t, n1, "demo")
	l2, s2 := subscribe(t, n2, "demo")
	_, left := subscribe(t, n2, "left")
	for room, likes := range map[string]int64{"demo": 100, "left": 7} {
		if err := n1.Store.Likes.AddLikes(room, likes); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := receive(t, l1.likes), receive(t, l2.likes); a != 100 || b != 100 {
		t.Fatal(a, b)
	}
	eventually(t, "the other room's likes are shown", func() bool { return n2.Feeds.Seen("left").Likes == 7 })
	left.Close()
	revision, err := n1.Store.Settings.PutSettings(ctx, "demo", []byte("title"), 0)
	if err != nil {
		t.Fatal(err)
	}
	receive(t, l1.settings)
	receive(t, l2.settings)
	rules := make(chan store.Edition, 16)
	stop, err := n2.Store.Rules.Follow(func(r store.Edition) { rules <- r })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := n1.Store.Rules.Publish(ctx, []byte("rules"), 0); err != nil {
		t.Fatal(err)
	}
	before := receive(t, rules)
	gifts := make(chan store.Edition, 16)
	if stop, err = n2.Store.Catalogue.Follow(func(e store.Edition) { gifts <- e }); err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := n1.Store.Catalogue.Publish(ctx, []byte("gifts"), 0); err != nil {
		t.Fatal(err)
	}
	offered := receive(t, gifts)
	if _, err := n1.Store.Secrets.Secret(ctx, "auth", "agreed"); err != nil {
		t.Fatal(err)
	}
	old := storeGift(t, n1, "demo", "u", "old", "old")
	receive(t, l1.gifts)
	receive(t, l2.gifts)

	stopNats(s)
	if err := n1.Store.Likes.AddLikes("demo", 3); err != nil { // waits
		t.Fatal(err)
	}
	s = natsServerAt(t, t.TempDir(), port)

	total := func(f *Fabric, room string) int64 {
		n, err := f.Store.Likes.Likes(testContext(t), room)
		if err != nil {
			return -1
		}
		return n
	}
	eventually(t, "totals are back", func() bool { return total(n1, "demo") >= 103 && total(n2, "left") >= 7 })
	if err := n2.Store.Likes.AddLikes("demo", 4); err != nil {
		t.Fatal(err)
	}
	for i, l := range []*listener{l1, l2} {
		for last := int64(100); last < 107; {
			next := receive(t, l.likes)
			if next <= last {
				t.Fatalf("node %d: likes fell from %d to %d", i+1, last, next)
			}
			last = next
		}
	}
	if a, b := total(n1, "demo"), total(n2, "left"); a != 107 || b != 7 {
		t.Errorf("likes %d, want 107; of the other room %d, want 7", a, b)
	}
	after := receive(t, rules)
	if after.Version <= before.Version || string(after.Payload) != "rules" {
		t.Errorf("limits %d %q after %d", after.Version, after.Payload, before.Version)
	}
	if again := receive(t, gifts); again.Version <= offered.Version || string(again.Payload) != "gifts" {
		t.Errorf("catalogue %d %q after %d", again.Version, again.Payload, offered.Version)
	}
	payload, again, err := n2.Store.Settings.Settings(ctx, "demo")
	if err != nil || string(payload) != "title" || again <= revision {
		t.Errorf("settings %q %d, %v; revision was %d", payload, again, err, revision)
	}
	next, err := n2.Store.Settings.PutSettings(ctx, "demo", []byte("new"), again)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []*listener{l1, l2} {
		got := receive(t, l.settings)
		for got.payload != "new" {
			got = receive(t, l.settings)
		}
		if got.revision != next {
			t.Errorf("%+v, want revision %d", got, next)
		}
	}
	gift := storeGift(t, n2, "demo", "u", "new", "new")
	if gift.Seq <= old.Seq {
		t.Errorf("gift %d after %d", gift.Seq, old.Seq)
	}
	for _, l := range []*listener{l1, l2} {
		if g := receive(t, l.gifts); g.Seq != gift.Seq || g.Prev != old.Seq {
			t.Errorf("gift %+v", g)
		}
	}
	_, _ = s1, s2
	n3 := open(t, cfg("n3"))
	if _, s3 := subscribe(t, n3, "demo"); s3.Opening().Likes != 107 || s3.Opening().LastGift != gift.Seq {
		t.Errorf("a new node's opening %+v", s3.Opening())
	}
	if secret, err := n3.Store.Secrets.Secret(ctx, "auth", "another"); err != nil || secret != "agreed" {
		t.Errorf("secret %q, %v", secret, err)
	}
	if n3.Store.Incarnation() <= n2.Store.Incarnation() {
		t.Errorf("incarnation %d after %d", n3.Store.Incarnation(), n2.Store.Incarnation())
	}
}

// A store that went back in time is found by the sweep.
func TestSweepFindsLostLikes(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	f := node(t, s, "n1")
	l, sub := subscribe(t, f, "demo")
	if err := f.Store.Likes.AddLikes("demo", 50); err != nil {
		t.Fatal(err)
	}
	receive(t, l.likes)
	ctx := testContext(t)
	stream, err := f.Link.JS.Stream(ctx, link.LikesStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(link.LikesPrefix+"demo")); err != nil {
		t.Fatal(err)
	}
	f.Feeds.SweepSoon()
	eventually(t, "the total is back", func() bool { total, err := f.Store.Likes.Likes(ctx, "demo"); return err == nil && total == 50 })
	sub.Close()
}

// Of the nodes that tell an empty store what they know the first one may have heard less than the others. What they know wins:
// nobody is handed the older copy, and the store ends with the newer.
func TestNewerCopyIsRestored(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	ctx := testContext(t)
	cfg := nodeConfig(s, "n1")
	cfg.FollowEvery = 20 * time.Millisecond
	f := open(t, cfg)
	l, _ := subscribe(t, f, "demo")
	rules := make(chan store.Edition, 64)
	stop, err := f.Store.Rules.Follow(func(r store.Edition) { rules <- r })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var version, revision uint64
	for _, text := range []string{"old", "new"} {
		if version, err = f.Store.Rules.Publish(ctx, []byte(text), version); err != nil {
			t.Fatal(err)
		}
		if revision, err = f.Store.Settings.PutSettings(ctx, "demo", []byte(text), revision); err != nil {
			t.Fatal(err)
		}
	}
	for r := receive(t, rules); r.Version != version; r = receive(t, rules) {
	}
	for got := receive(t, l.settings); got.revision != revision; got = receive(t, l.settings) {
	}

	behind := node(t, s, "n2") // restores what it has heard of, the first ones
	for _, w := range []struct {
		subject string
		origin  uint64
		expect  jetstream.PublishOpt
	}{
		{link.RulesSubject, version - 1, jetstream.WithExpectLastSequence(version)},
		{link.BucketPrefix(link.SettingsBucket) + "demo", revision - 1, jetstream.WithExpectLastSequencePerSubject(revision)},
	} {
		m := &nats.Msg{Subject: w.subject, Data: []byte("old"), Header: link.Record{Origin: w.origin}.Header()}
		if _, err := behind.Link.JS.PublishMsg(ctx, m, w.expect); err != nil {
			t.Fatal(err)
		}
	}
	if r := receive(t, rules); string(r.Payload) != "new" || r.Version != version+2 {
		t.Errorf("handed version %d, %s", r.Version, r.Payload)
	}
	if got := receive(t, l.settings); got != (setting{"new", revision + 2}) {
		t.Errorf("handed %+v", got)
	}
	if got, err := f.Store.SettingsRecord(ctx, "demo"); err != nil || got.Decided() != revision {
		t.Errorf("the settings are those of %d, want %d: %v", got.Decided(), revision, err)
	}
}
