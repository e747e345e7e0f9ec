package node

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"liveroom/fanout"
	"liveroom/fanout/store"
	"liveroom/internal/journal"
	"liveroom/protocol"
)

type nobody struct{}

func (nobody) Message(protocol.Class, []byte) {}
func (nobody) Gift(protocol.StoredGift)       {}
func (nobody) Likes(int64)                    {}
func (nobody) Settings([]byte, uint64)        {}
func (nobody) Act(protocol.StoredAct)         {}

// times is how often something is in the journal.
func times(key string) int { return max(1, map[string]int{"danmaku demo": 3, "room demo": 2}[key]) }

// What nodes publish and store is in the journal as it was, once, and nothing that they say to themselves is.
func TestTheJournalHasWhatWasAdmitted(t *testing.T) {
	for _, off := range []bool{false, true} {
		t.Run(fmt.Sprint("off ", off), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			f, err := fanout.Open(ctx, fanout.Config{NodeID: "n1", DataDir: t.TempDir(), Danmaku: store.Danmaku{Off: off}, ProbeEvery: 20 * time.Millisecond, ProbeTimeout: time.Minute}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := f.Close(context.WithoutCancel(ctx)); err != nil {
					t.Error(err)
				}
			}()
			sub, err := f.Feeds.Subscribe(ctx, "a.b", nobody{})
			if err != nil {
				t.Fatal(err)
			}
			defer sub.Close()
			danmaku := protocol.AppendDanmaku(nil, protocol.Danmaku{MID: "m1", User: protocol.User{ID: "ann"}, Text: "hi", TS: 1})
			for range 3 {
				if err := f.Feeds.Publish(protocol.ClassDanmaku, "demo", danmaku); err != nil {
					t.Fatal(err)
				}
			}
			gift := protocol.AppendGift(nil, protocol.Gift{User: protocol.User{ID: "ann"}, Gift: "rose", Count: 1, Combo: 1})
			receipt, err := f.Store.Gifts.StoreGift(ctx, "demo", "ann", "1", gift)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Store.Audit.Audit(ctx, "demo", []byte(`{"action":"mute"}`)); err != nil {
				t.Fatal(err)
			}
			for _, note := range []struct{ room, event string }{
				{"demo", `{"ev":"audience","joined":1}`}, {"demo", `{"ev":"session","action":"left"}`}, {"demo", `{"ev":"room","action":"made"}`},
				{"demo", `{"ev":"danmaku","hidden":true}`}, {"", `{"ev":"custom","mid":"c1"}`}, {"demo", `{"ev":"of_a_later_version"}`},
			} {
				if err := f.Store.Journal.Note(note.room, []byte(note.event)); err != nil {
					t.Fatal(err)
				}
			}
			for _, action := range []string{"announce", "close"} {
				if _, err := f.Store.Audit.Audit(ctx, "demo", []byte(`{"action":"`+action+`"}`)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := f.Store.Audit.Audit(ctx, watchedLimits, []byte(`{}`)); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Store.Rules.Publish(ctx, []byte(`{"format":1,"kind":"publish","author":"op","rules":[]}`), 0); err != nil {
				t.Fatal(err)
			}
			if err := f.Store.Likes.AddLikes("demo", 7); err != nil {
				t.Fatal(err)
			}
			held := protocol.Held{MID: "m2", State: protocol.HeldWaiting, User: protocol.User{ID: "ann"}, Text: "hm"}
			value, err := held.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Store.Journal.Note("demo", value); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{
				"held demo":    `{"ev":"held","mid":"m2","state":"waiting"`,
				"danmaku demo": string(danmaku), "gift demo": fmt.Sprintf(`{"ev":"gift","mid":"g%d","seq":%[1]d,"user"`, receipt.Seq), "moderation demo": `{"action":"mute"}`,
				"limits ": `"author":"op"`, "likes demo": `{"ev":"like","delta":0,"total":7}`,
				"audience demo": `"joined":1`, "session demo": `"left"`, "room demo": `"action":"`, "danmaku demo hidden": `"hidden":true`, "custom ": `"c1"`, "announcement demo": `"announce"`,
			}
			if off {
				delete(want, "danmaku demo")
			}
			got := map[string]int{}
			missing := func() bool {
				for key := range want {
					if got[key] == 0 || got[key] < times(key) {
						return true
					}
				}
				return false
			}
			j := journal.Journal{Store: logs{f.Store.Journal}}
			for at := (journal.Cursor{}); missing(); {
				page, err := j.Wait(ctx, at, journal.Filter{}, 2)
				if err != nil || ctx.Err() != nil {
					t.Fatal("got", got, err, ctx.Err())
				}
				for _, e := range page.Entries {
					key := string(e.Kind) + " " + e.Room
					if strings.Contains(string(e.Event), `"hidden"`) {
						key += " hidden"
					}
					if part := want[key]; part == "" || !strings.Contains(string(e.Event), part) {
						t.Errorf("%s %s: %s", e.ID, key, e.Event)
					}
					got[key]++
				}
				at = page.Next
			}
			// A room is found by itself as well, and nothing is told twice.
			page, err := j.Read(ctx, journal.Cursor{}, journal.Filter{Rooms: []string{"demo"}, Kinds: []journal.Kind{journal.Danmaku, journal.Gift}}, 10)
			if n := len(page.Entries); err != nil || off && n != 2 || !off && n != 5 {
				t.Errorf("of the room: %d entries, %v", n, err)
			}
			page, err = j.Read(ctx, journal.Cursor{}, journal.Filter{Rooms: []string{"a.b"}}, 10)
			if err != nil || len(page.Entries) != 0 {
				t.Errorf("of another room: %v, %v", page.Entries, err)
			}
			for key := range want {
				if n := got[key]; n != times(key) {
					t.Errorf("%s: %d times", key, n)
				}
			}
		})
	}
}
