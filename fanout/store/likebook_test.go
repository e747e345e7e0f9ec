package store

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestLikeBookModel takes likes to a store that loses answers and connections: every like is in the store once, or
// still waits, unless its increment was given up after the store's memory for ids ended.
func TestLikeBookModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newLikeBook()
		now := time.Unix(1000, 0)
		store, ids := map[string]int64{}, map[string]bool{}
		var added, givenUp int64
		shown := map[string]int64{}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				n := rapid.Int64Range(1, 20).Draw(t, "likes")
				added += n
				b.add(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "room"), n)
			},
			"flush": func(t *rapid.T) {
				before := b.waiting()
				batch := b.take(now, "n1/1")
				givenUp += before - b.waiting()
				for i, inc := range batch {
					switch rapid.SampledFrom([]string{"ok", "ok", "unsent", "lost request", "lost answer"}).Draw(t, "outcome") {
					case "unsent":
						b.unsent(batch[i:])
						return
					case "lost request":
						b.trying(inc)
					case "lost answer":
						b.trying(inc)
						if !ids[inc.id] {
							ids[inc.id], store[inc.room] = true, store[inc.room]+inc.delta
						}
					default:
						b.trying(inc)
						if !ids[inc.id] {
							ids[inc.id], store[inc.room] = true, store[inc.room]+inc.delta
						}
						b.stored(inc, store[inc.room])
					}
				}
			},
			"announce": func(t *rapid.T) {
				totals := b.due()
				if rapid.Bool().Draw(t, "fails") {
					b.notAnnounced(totals)
					return
				}
				for room, total := range totals {
					if total < shown[room] || total > store[room] {
						t.Fatalf("room %s: shown %d after %d, stored %d", room, total, shown[room], store[room])
					}
					shown[room] = total
				}
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "s")) * time.Second)
			},
			"": func(t *rapid.T) {
				// An increment whose answer was lost is both stored and waiting; nothing is lost but what was given up.
				var stored int64
				for _, total := range store {
					stored += total
				}
				if stored > added {
					t.Fatalf("%d likes stored of %d", stored, added)
				}
				if stored+b.waiting()+givenUp < added {
					t.Fatalf("%d stored, %d waiting, %d given up, of %d", stored, b.waiting(), givenUp, added)
				}
			},
		})
	})
}

func TestLikeBookForgetsRooms(t *testing.T) {
	b := newLikeBook()
	for i := range 1000 {
		b.add(fmt.Sprint("room", i), 1)
	}
	for _, inc := range b.take(time.Unix(1000, 0), "n1/1") {
		b.stored(inc, 1)
	}
	b.due()
	if len(b.tallies) != 0 || len(b.totals) != 0 {
		t.Errorf("%d tallies, %d totals left", len(b.tallies), len(b.totals))
	}
}
