package fanout

import (
	"sync"
	"testing"
)

func TestNodesAgreeOnTheSecretOfferedFirst(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	a := open(t, Config{NodeID: "a", URLs: []string{s.ClientURL()}, Shared: true})
	b := open(t, Config{NodeID: "b", URLs: []string{s.ClientURL()}, Shared: true})
	var got [2]string
	var both sync.WaitGroup
	for i, f := range []*Fabric{a, b} {
		both.Go(func() {
			var err error
			if got[i], err = f.Store.Secrets.Secret(testContext(t), "auth", "offered by "+f.cfg.NodeID); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if got[0] != got[1] || got[0] != "offered by a" && got[0] != "offered by b" {
		t.Errorf("a has %q, b has %q", got[0], got[1])
	}
	again, err := b.Store.Secrets.Secret(testContext(t), "auth", "another")
	if err != nil || again != got[0] {
		t.Errorf("later %q, %v", again, err)
	}
}
