package room_test

import (
	"context"
	"fmt"

	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room"
)

// printer is a session that prints what its viewer is sent.
type printer struct{ flushed chan struct{} }

func (p printer) Open(events []byte)       { fmt.Println("open", protocol.EventTS(events) != 0) }
func (p printer) Control(events []byte)    { fmt.Printf("control %.24s\n", events) }
func (p printer) Await(f func()) bool      { f(); return true }
func (p printer) Aside(f func()) bool      { f(); return true }
func (p printer) Hold(events []byte)       { fmt.Printf("hold %.24s\n", events) }
func (p printer) Release()                 {}
func (p printer) Close(r protocol.Refusal) { fmt.Println("close", r.Reason()) }
func (p printer) Deliver(b *protocol.Broadcast) {
	fmt.Println("danmaku in the frame:", b.Count(protocol.ClassDanmaku))
	close(p.flushed)
}

// loop is a bus that delivers danmaku to one room and knows nothing else.
type loop struct {
	room.Bus
	feed room.Feed
}

func (l *loop) Subscribe(_ context.Context, _ string, f room.Feed) (room.Opening, func(), error) {
	l.feed = f
	return room.Opening{Known: true, LastGift: 7}, func() {}, nil
}

func (l *loop) GiftsEnd(context.Context, string) (uint64, error) { return 7, nil }

func (l *loop) Note(string, []byte) error { return nil }

func (l *loop) Erase(context.Context, room.Erasure) error { return nil }

func (l *loop) ErasedUntil(string) int64 { return 0 }

func (l *loop) LedgerID() string { return "" }

func (l *loop) Recent(context.Context, string, int) ([][]byte, error) { return nil, nil }

func (l *loop) Show(context.Context, string) ([]byte, uint64, error) { return nil, 0, nil }

func (l *loop) PutShow(context.Context, string, []byte, uint64) (uint64, error) { return 1, nil }

func (l *loop) Publish(c protocol.Class, _ string, message []byte) error {
	l.feed.Message(c, message)
	return nil
}

// A viewer joins a room and says something.
func Example() {
	rules, err := limit.Default().Compile()
	if err != nil {
		fmt.Println(err)
		return
	}
	hub, err := room.New(room.Config{Bus: &loop{}, Gate: limit.NewGate(rules, limit.NewClock())})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := printer{make(chan struct{})}
	member, refusal := hub.Join(context.Background(), room.JoinRequest{
		Session: p, Conn: &limit.Subject{Scope: limit.ScopeConn},
		Hello: &protocol.Request{ID: "1", Room: "demo"},
		Who:   room.Identity{User: "u1", Name: "Ada", Role: protocol.RoleViewer},
	})
	if refusal != nil {
		fmt.Println(refusal.Reason())
		return
	}
	member.Receive(&protocol.Request{Op: protocol.OpDanmaku, ID: "2", Text: "hello"})
	<-p.flushed
	member.Leave()
	fmt.Println(hub.Close(context.Background()))
	// Unordered output:
	// open false
	// hold {"ev":"ack","id":"2","co
	// danmaku in the frame: 1
	// <nil>
}
