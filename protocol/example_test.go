package protocol_test

import (
	"fmt"

	"liveroom/protocol"
)

// A tick gathers what a room has to say and makes one frame for everybody.
func Example() {
	var tick protocol.Batch
	tick.Add(protocol.ClassDanmaku, protocol.AppendDanmaku(nil, protocol.Danmaku{
		MID: "m1", User: protocol.User{ID: "u1", Name: "Ann"}, Text: "hello", TS: 1790000000000,
	}))
	tick.Add(protocol.ClassLike, protocol.AppendLike(nil, 120, 4567))
	b := tick.Build()
	fmt.Printf("%s\n", b.Full().Payload())
	fmt.Println("for a viewer who fell behind:", b.Essential())
	// Output:
	// [{"ev":"danmaku","mid":"m1","user":{"id":"u1","name":"Ann"},"text":"hello","ts":1790000000000},{"ev":"like","delta":120,"total":4567}]
	// for a viewer who fell behind: <nil>
}

func ExampleDecodeRequest() {
	var r protocol.Request
	err := protocol.DecodeRequest([]byte(`{"op":"like","id":"c9","count":50}`), &r)
	fmt.Println(r.ID, err)
	// Output: c9 400 bad_request: count: allowed is 1 to 20; received "50"
}
