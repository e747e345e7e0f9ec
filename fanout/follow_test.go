package fanout

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"liveroom/fanout/link"
	"liveroom/fanout/store"
)

// followingAll opens a node that follows everything, and returns what it is told is revoked.
func followingAll(t *testing.T, cfg Config) (*Fabric, <-chan string) {
	t.Helper()
	f := open(t, cfg)
	told := make(chan string, 64)
	var stop func()
	var err error
	// On a busy machine the short ProbeTimeout cuts the connection now and then, and a question that is under way with it.
	eventually(t, "what is revoked is read", func() bool {
		stop, err = f.Store.Revoked.FollowRevoked(testContext(t), func(name string, _ time.Time, _ bool) {
			select {
			case told <- name:
			default: // nobody asks this node
			}
		})
		return err == nil
	})
	t.Cleanup(stop)
	eventually(t, "what is held is read", func() bool {
		stop, err = f.Store.Held.FollowHeld(testContext(t), func(store.HeldRecord, bool) {})
		return err == nil
	})
	t.Cleanup(stop)
	for _, kept := range []*store.Editions{f.Store.Rules, f.Store.Catalogue, f.Store.Filter} {
		if stop, err = kept.Follow(func(store.Edition) {}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
	}
	eventually(t, "erasures are read", func() bool {
		stop, err = f.Store.Erasures.FollowErasures(testContext(t), func(store.Erasure, bool) {})
		return err == nil
	})
	t.Cleanup(stop)
	eventually(t, "a secret is agreed on", func() bool {
		_, err = f.Store.Secrets.Secret(testContext(t), "auth", "agreed")
		return err == nil
	})
	allStand(t, f)
	return f, told
}

func allStand(t *testing.T, f *Fabric) {
	t.Helper()
	for _, name := range link.Followed() {
		eventually(t, name+" is followed", func() bool { return f.Link.Follows(name) == nil })
	}
}

func followConfig(s *server.Server, id, url string) Config {
	cfg := nodeConfig(s, id)
	cfg.URLs, cfg.SweepEvery = []string{url}, 100*time.Millisecond
	cfg.ProbeEvery, cfg.ProbeTimeout, cfg.FollowEvery = 20*time.Millisecond, 400*time.Millisecond, 50*time.Millisecond
	return cfg
}

func hears(t *testing.T, told <-chan string, name string) {
	t.Helper()
	for got := receive(t, told); got != name; got = receive(t, told) {
	}
}

// A server that was away: until a node has looked at what was decided meanwhile it says that it does not know, one by one.
func TestFollowersOverARestartOfTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := natsServerAt(t, dir, server.RANDOM_PORT)
	port := s.Addr().(*net.TCPAddr).Port
	n1, _ := followingAll(t, followConfig(s, "n1", s.ClientURL()))
	n2, told := followingAll(t, followConfig(s, "n2", s.ClientURL()))
	for i, name := range []string{"user:a", "user:b", "user:c"} {
		stopNats(s)
		for _, what := range link.Followed() {
			eventually(t, what+" is missed", func() bool { return n2.Link.Follows(what) != nil })
		}
		s = natsServerAt(t, dir, port)
		if i > 0 { // as soon as it can be stored, and else when all is well
			allStand(t, n1)
		}
		eventually(t, "the store takes it", func() bool { return n1.Store.Revoked.Revoke(testContext(t), name, time.Now()) == nil })
		began := time.Now()
		hears(t, told, name)
		t.Logf("told %v after it was stored", time.Since(began))
		allStand(t, n2)
	}
}

// A network that swallows everything and says nothing: a node notices that it is deaf, and has been told what it missed
// before it says that it follows again.
func TestFollowersBehindABlackHole(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	p := newProxy(t, s.ClientURL())
	well := followConfig(s, "n1", s.ClientURL())
	well.ProbeTimeout = never // on a machine that is too busy for 400 ms it connects anew, and refuses meanwhile
	n1, _ := followingAll(t, well)
	n2, told := followingAll(t, followConfig(s, "n2", p.url()))
	subscribe(t, n2, "demo.x")
	revision, err := n1.Store.Settings.PutSettings(testContext(t), "demo.x", []byte("one"), 0)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "settings arrive", func() bool { return n2.Feeds.Seen("demo.x").Revision == revision })

	p.swallow.Store(true)
	for _, what := range link.Followed() {
		eventually(t, what+" is missed", func() bool { return n2.Link.Follows(what) != nil })
	}
	if err := n1.Store.Revoked.Revoke(testContext(t), "user:a", time.Now()); err != nil {
		t.Fatal(err)
	}
	if revision, err = n1.Store.Settings.PutSettings(testContext(t), "demo.x", []byte("two"), revision); err != nil {
		t.Fatal(err)
	}
	act := uint64(0)
	eventually(t, "an act is stored", func() bool { // also where n1 is slow enough to be cut off for a while
		_, _ = n1.Store.Settings.PutAct(testContext(t), "demo.x", []byte("{}"), 0, false)
		acts, err := n1.Store.Settings.ActsAfter(testContext(t), "demo.x", 0)
		if err != nil || len(acts) == 0 {
			return false
		}
		act = acts[0].Seq
		return true
	})
	p.swallow.Store(false)
	eventually(t, "revocations are followed", func() bool { return n2.Link.Follows(link.FollowRevocations) == nil })
	if len(told) == 0 {
		t.Error("it follows again and was not told what it missed")
	}
	eventually(t, "settings are followed", func() bool { return n2.Link.Follows(link.FollowSettings) == nil })
	if got := n2.Feeds.Seen("demo.x"); got.Revision != revision || got.Act != act {
		t.Errorf("it follows again at %+v, want revision %d, act %d", got, revision, act)
	}
	allStand(t, n2)
}

// An older copy of the store numbers anew what it stores next, and who waits for the numbers after those that he knows waits
// for long.
func TestFollowersOfAnOlderCopyOfTheStore(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), t.TempDir()
	s := natsServerAt(t, dir, server.RANDOM_PORT)
	port := s.Addr().(*net.TCPAddr).Port
	n1, _ := followingAll(t, followConfig(s, "n1", s.ClientURL()))
	_, told := followingAll(t, followConfig(s, "n2", s.ClientURL()))
	revoke := func(name string) {
		t.Helper()
		eventually(t, name+" is stored", func() bool { return n1.Store.Revoked.Revoke(testContext(t), name, time.Now()) == nil })
		hears(t, told, name)
	}
	revoke("user:a")
	stopNats(s)
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	s = natsServerAt(t, dir, port)
	for _, name := range []string{"user:b", "user:c", "user:d"} {
		revoke(name)
	}
	stopNats(s)
	natsServerAt(t, copied, port)
	revoke("user:e")
}

// What a node decides holds on it at once, also while nobody can store it.
func TestRevocationHoldsHereWhileNATSIsAway(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	f, told := followingAll(t, followConfig(s, "n1", s.ClientURL()))
	stopNats(s)
	eventually(t, "the loss is noticed", func() bool { return !f.Link.Connected() })
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	if err := f.Store.Revoked.Revoke(ctx, "user:a", time.Now()); err == nil {
		t.Error("stored nowhere and no error")
	}
	select {
	case <-told:
	default:
		t.Error("not told at once")
	}
}
