package room

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"liveroom/protocol"
)

// walker is a viewer of a huge room that tells how far the room's flush has come.
type walker struct {
	nullSession
	delivered *atomic.Int64
	at        func(n int64) // called once per frame with the number of the frame among all viewers'
}

func (w *walker) Deliver(*protocol.Broadcast) { w.at(w.delivered.Add(1)) }

// A small room does not wait for a huge one's flush: what it has to show goes out between two parts of it.
func TestSmallRoomPassesAHugeOne(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that a turn is taken only where one is given
	const viewers = 20 * 128
	w := newWorld(t, newMemoryBus(), func(c *Config) { c.Gate = gateOf(t, unlimited) })
	small := w.join("small", "s")
	var delivered, shown atomic.Int64
	var armed atomic.Bool
	asked := int64(10)
	at := func(n int64) {
		switch {
		case !armed.Load():
		case n == asked:
			small.Receive(danmakuOf("1", "hello"))
		case shown.Load() == 0 && len(small.seen("danmaku")) > 0:
			shown.Store(n)
		}
	}
	for i := range viewers {
		w.join("huge", fmt.Sprint("u", i), func(j *JoinRequest) { j.Session = &walker{delivered: &delivered, at: at} })
	}
	r, _ := w.hub.Room("huge")
	for idle := false; !idle; runtime.Gosched() {
		idle = r.audience.Idle()
	}
	delivered.Store(0)
	armed.Store(true)
	r.audience.Message(protocol.ClassDanmaku, []byte(`{"ev":"danmaku","mid":"m","ts":1}`))
	for delivered.Load() < viewers {
		runtime.Gosched()
	}
	if n := shown.Load(); n == 0 || n > asked+2*128 {
		t.Errorf("said at frame %d of %d of the huge room, shown after frame %d", asked, viewers, n)
	}
}
