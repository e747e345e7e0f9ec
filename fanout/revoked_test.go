package fanout

import (
	"testing"
	"time"
)

func TestRevocationsReachNodesThatAreThereAndThoseToCome(t *testing.T) {
	t.Parallel()
	type told struct {
		name  string
		at    time.Time
		known bool
	}
	s := natsServer(t)
	follow := func(f *Fabric) <-chan told {
		news := make(chan told, 10)
		stop, err := f.Store.Revoked.FollowRevoked(testContext(t), func(name string, at time.Time, known bool) { news <- told{name, at, known} })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		return news
	}
	at := time.UnixMilli(1_790_000_000_123)
	a := open(t, Config{NodeID: "a", URLs: []string{s.ClientURL()}, Shared: true})
	here := follow(a)
	for _, name := range []string{"user:ann@example.com", "token:*.> /ä"} {
		if err := a.Store.Revoked.Revoke(testContext(t), name, at); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, here); got.known || !got.at.Equal(at) {
			t.Errorf("told %v", got)
		}
	}
	b := open(t, Config{NodeID: "b", URLs: []string{s.ClientURL()}, Shared: true})
	there := follow(b)
	for range 2 {
		if got := receive(t, there); !got.known || !got.at.Equal(at) {
			t.Errorf("the node that came later is told %v", got)
		}
	}
	later := at.Add(time.Hour)
	if err := b.Store.Revoked.Revoke(testContext(t), "user:ann@example.com", later); err != nil {
		t.Fatal(err)
	}
	for _, news := range []<-chan told{here, there} {
		got := receive(t, news)
		for got.at.Equal(at) { // again
			got = receive(t, news)
		}
		if got != (told{"user:ann@example.com", later, false}) {
			t.Errorf("told %v", got)
		}
	}
}
