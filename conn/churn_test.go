package conn

import (
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"liveroom/protocol"
)

// coder/websocket#445: memory climbs with churn though counts fall. Rounds of sockets of which a half say goodbye and a half are reset:
// goroutines and heap return to the second round's level.
func TestChurnLeavesNothing(t *testing.T) {
	const rounds, sockets = 6, 300
	l := newLobby()
	l.hello = func(s *Session, _ *protocol.Request) (Seat, *protocol.Refusal) {
		s.Open([]byte(`{"ev":"welcome"}`))
		return leaver{}, nil
	}
	n := startNode(t, Config{}, l)
	var base runtime.MemStats
	var goroutines int
	for round := range rounds {
		churn(t, n, sockets)
		n.running.Wait()
		if round == 1 {
			goroutines = settled(&base)
		}
	}
	var end runtime.MemStats
	if got := settled(&end); got > goroutines {
		t.Errorf("%d goroutines, %d after the second round", got, goroutines)
	}
	// 5 %, and what the runtime itself may move by at this size; what is left of a socket would be some hundred bytes, 1,200 times.
	if limit := base.HeapAlloc + base.HeapAlloc/20 + 256<<10; end.HeapAlloc > limit {
		t.Errorf("heap %d KiB, %d KiB after the second round", end.HeapAlloc>>10, base.HeapAlloc>>10)
	}
	if got := len(n.wheel.all()); got != 0 {
		t.Errorf("%d sessions in the wheel", got)
	}
	if s, r := n.sessions.Load(), n.refused.Load(); s != 0 || r != 0 {
		t.Errorf("%d sessions, %d turned away", s, r)
	}
}

type leaver struct{}

func (leaver) Receive(*protocol.Request) {}
func (leaver) Leave()                    {}

func churn(t *testing.T, n *node, sockets int) {
	var wg sync.WaitGroup
	for i := range sockets {
		wg.Go(func() {
			nc, err := net.Dial("tcp", n.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			c := rawUpgrade(t, nc, string(masked(opText, []byte(`{"op":"hello","id":"1","room":"demo"}`))))
			c.readFrame(t)
			if i%2 == 0 {
				c.write(t, masked(opClose, []byte{3, 232}))
				c.drain()
				return
			}
			_ = nc.(*net.TCPConn).SetLinger(0)
		})
	}
	wg.Wait()
}

// settled returns the number of goroutines when it no longer falls, and reads memory after the collector has had its way then,
// finalizers included.
func settled(m *runtime.MemStats) int {
	least, tick := runtime.NumGoroutine(), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for still := 0; still < 20; <-tick.C {
		if got := runtime.NumGoroutine(); got < least {
			least, still = got, 0
		}
		still++
	}
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(m)
	return least
}
