package fanout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
	"liveroom/fanout/store"
	"liveroom/protocol"
)

// What a dead letter quotes of a user goes with the user: what was said whole, of a gift the name.
func TestDeadLettersForget(t *testing.T) {
	t.Parallel()
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir()})
	stop, err := f.Store.Erasures.FollowErasures(t.Context(), func(store.Erasure, bool) {})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	ann, bob := protocol.User{ID: "ann", Name: "Nick of ann"}, protocol.User{ID: "bob", Name: "Bob"}
	for id, event := range map[string][]byte{
		"said":    protocol.AppendDanmaku(nil, protocol.Danmaku{MID: "said", User: ann, Text: "words of ann", TS: 5}),
		"given":   protocol.AppendGift(nil, protocol.Gift{User: ann, Gift: "rose", Count: 7, TS: 5}),
		"replied": protocol.AppendDanmaku(nil, protocol.Danmaku{MID: "replied", User: bob, Text: "to you", Reply: "said", ReplyTo: &ann, TS: 6}),
	} {
		kind := map[bool]string{true: "gift", false: "danmaku"}[id == "given"]
		letter := fmt.Appendf(nil, `{"why":"refused","entry":{"id":%q,"kind":%q,"room":"demo","event":%s}}`, id, kind, event)
		if err := f.Store.Letters.PutLetter(t.Context(), "books", id, letter); err != nil {
			t.Fatal(err)
		}
	}
	e := store.Erasure{User: "ann", Until: 10}
	if err := f.Store.Erasures.Erase(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if n, err := f.Store.Erasures.TakeOut(t.Context(), []store.Erasure{e}); n != 1 || err != nil {
		t.Errorf("took out %d, %v", n, err)
	}
	letters, err := f.Store.Letters.LettersOf(t.Context(), "books", 0, 10)
	if err != nil || len(letters) != 2 {
		t.Fatalf("%d letters left, %v", len(letters), err)
	}
	all := string(letters[0].Data) + string(letters[1].Data)
	if strings.Contains(all, "Nick") || !strings.Contains(all, `"count":7`) || !strings.Contains(all, "to you") || !strings.Contains(all, "Bob") {
		t.Errorf("left: %s", all)
	}
}

// What was erased in one room, or is one message, is forgotten once it went; a user stays erased for longer than anything tells of one.
func TestHowLongErasuresAreKnown(t *testing.T) {
	t.Parallel()
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir(), GiftAge: 365 * 24 * time.Hour})
	for _, e := range []store.Erasure{{User: "ann", Until: 10, Done: true}, {Room: "demo", User: "ann", Until: 10, Done: true}, {Room: "demo", MID: "m", Until: 10}} {
		if err := f.Store.Erasures.Erase(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	s, err := f.Link.JS.Stream(t.Context(), link.ErasureStream)
	if err != nil {
		t.Fatal(err)
	}
	if age := s.CachedInfo().Config.MaxAge; age <= 365*24*time.Hour {
		t.Errorf("known for %v", age)
	}
	for seq, ttl := range []string{"", "1h0m0s", ""} {
		m, err := s.GetMsg(t.Context(), uint64(seq+1))
		if err != nil || m.Header.Get("Nats-TTL") != ttl {
			t.Errorf("erasure %d: %v, kept for %q, want %q", seq+1, err, m.Header.Get("Nats-TTL"), ttl)
		}
	}
}

// BenchmarkTakeOut tells what it costs to find and overwrite a user's hundred messages among 200,000 of a log, in all rooms.
func BenchmarkTakeOut(b *testing.B) {
	f := open(b, Config{NodeID: "n1", DataDir: b.TempDir()})
	now := time.Now().UnixMilli()
	fill := func(user string, n int) {
		var last jetstream.PubAckFuture
		for i := range n {
			event := protocol.AppendDanmaku(nil, protocol.Danmaku{MID: fmt.Sprintf("%s%d", user, i), User: protocol.User{ID: user, Name: "Nick of " + user}, Text: fmt.Sprintf("what %s has to say for the %dth time", user, i), TS: now})
			var err error
			if last, err = f.Link.JS.PublishAsync(link.SaidPrefix+fmt.Sprintf("room%d", i%50), event); err != nil {
				b.Fatal(err)
			}
			if i%1000 == 999 {
				<-f.Link.JS.PublishAsyncComplete()
			}
		}
		<-last.Ok()
	}
	for b.Loop() {
		b.StopTimer()
		for range 10 {
			fill("bob", 20_000)
			fill("ann", 10)
		}
		b.StartTimer()
		n, err := f.Store.Erasures.TakeOut(b.Context(), []store.Erasure{{User: "ann", Until: now}})
		if err != nil || n != 100 {
			b.Fatal(n, err)
		}
	}
}
