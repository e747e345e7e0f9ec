package node

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room"
)

// listener tells when danmaku reach it, by their text, which is a number.
type listener struct {
	seat
	came func(*protocol.Broadcast)
}

func (l *listener) Deliver(b *protocol.Broadcast) { l.came(b) }

// BenchmarkSanctions says how late 200 danmaku a second are shown on another node, with 1,000 sanctions a minute in the same room, whose lists
// are nearly full, and without. Each round lasts ten seconds; the ratio is of the two p99.
func BenchmarkSanctions(b *testing.B) {
	server, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: b.TempDir(), NoSigs: true, NoLog: true, JetStreamMaxStore: 16 << 30, JetStreamMaxMemory: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	server.Start()
	defer server.WaitForShutdown()
	defer server.Shutdown()
	if !server.ReadyForConnections(time.Minute) {
		b.Fatal("no NATS server")
	}
	n1, n2 := newRoomsNode(b, "n1", server.ClientURL()), newRoomsNode(b, "n2", server.ClientURL())
	defer n1.close()
	defer n2.close()
	var mu sync.Mutex
	var late []time.Duration
	l := &listener{came: func(bc *protocol.Broadcast) {
		now := time.Now().UnixMicro()
		mu.Lock()
		defer mu.Unlock()
		for _, at := range sentAt(bc) {
			late = append(late, time.Duration(now-at)*time.Microsecond)
		}
	}}
	m, refusal := n2.hub.Join(b.Context(), room.JoinRequest{
		Session: l, SessionID: "l", Conn: &limit.Subject{Scope: limit.ScopeConn},
		Hello: &protocol.Request{Op: protocol.OpHello, ID: "1", Room: "demo"}, Who: room.Identity{User: "listener", Role: protocol.RoleViewer},
	})
	if refusal != nil {
		b.Fatal(refusal)
	}
	defer m.Leave()
	var ids atomic.Int64
	mute := func(user string) {
		req := &protocol.Request{Op: protocol.OpModerate, ID: fmt.Sprint("m", ids.Add(1)), Action: protocol.ActionMute, User: user, Seconds: 3600, Reason: "spam in every second message"}
		if ack := n1.hub.Speak(b.Context(), "demo", room.Caller{Who: room.Identity{User: "host", Role: protocol.RoleHost}}, req); ack.Code != protocol.OK {
			b.Error(ack.Code, ack.Err)
		}
	}
	for i := range 900 {
		mute(fmt.Sprint("guest-of-before-", i))
	}
	minute := func(sanctions bool) time.Duration {
		mu.Lock()
		late = late[:0]
		mu.Unlock()
		var both sync.WaitGroup
		end := time.Now().Add(10 * time.Second)
		both.Go(func() {
			for tick := time.NewTicker(5 * time.Millisecond); time.Now().Before(end); <-tick.C {
				n := ids.Add(1)
				req := &protocol.Request{Op: protocol.OpDanmaku, ID: fmt.Sprint("d", n), Text: fmt.Sprint(time.Now().UnixMicro())}
				n1.hub.Speak(b.Context(), "demo", room.Caller{Who: room.Identity{User: fmt.Sprint("u", n%400), Role: protocol.RoleViewer}}, req)
			}
		})
		if sanctions {
			both.Go(func() {
				for tick := time.NewTicker(60 * time.Millisecond); time.Now().Before(end); <-tick.C {
					mute(fmt.Sprint("guest-of-now-", ids.Add(1)%90))
				}
			})
		}
		both.Wait()
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(late)
		if len(late) < 1000 {
			b.Fatalf("%d danmaku came", len(late))
		}
		return late[len(late)*99/100]
	}
	minute(false)
	var quiet, busy []time.Duration
	for b.Loop() {
		quiet, busy = append(quiet, minute(false)), append(busy, minute(true))
	}
	slices.Sort(quiet)
	slices.Sort(busy)
	q, s := quiet[len(quiet)/2], busy[len(busy)/2]
	b.ReportMetric(float64(q.Microseconds())/1000, "ms-p99-quiet")
	b.ReportMetric(float64(s.Microseconds())/1000, "ms-p99-sanctions")
	b.ReportMetric(float64(s)/float64(q), "ratio")
}

// sentAt reads when the danmaku of a frame were sent.
func sentAt(bc *protocol.Broadcast) (at []int64) {
	var events []struct{ Ev, Text string }
	payload := bc.Full().Payload()
	if json.Unmarshal(payload, &events) != nil {
		return nil
	}
	for _, e := range events {
		var n int64
		if _, err := fmt.Sscan(e.Text, &n); err == nil && e.Ev == "danmaku" {
			at = append(at, n)
		}
	}
	return at
}
