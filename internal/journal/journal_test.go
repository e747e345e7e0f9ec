package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// shelf is a store in memory, with a clock that never stands still.
type shelf struct {
	logs   [NumLogs][]Record
	name   [NumLogs]string
	first  [NumLogs]uint64 // the least that is kept
	last   [NumLogs]uint64
	number uint64 // of the last danmaku in the original
	before map[string]uint64
	now    time.Time
	once   func() // called by the next State
	erased bool
}

func newShelf() *shelf {
	s := &shelf{now: time.UnixMilli(1_000_000), before: map[string]uint64{}}
	for l := range NumLogs {
		s.name[l], s.first[l] = "one", 1
	}
	return s
}

func (s *shelf) tick() time.Time { s.now = s.now.Add(time.Millisecond); return s.now }

func (s *shelf) State(_ context.Context, l Log) (State, error) {
	if f := s.once; f != nil {
		s.once = nil
		defer f()
	}
	st := State{Name: s.name[l], First: s.first[l], Last: s.last[l], Asked: s.now, Erased: s.erased && l == Said}
	if n := len(s.logs[l]); n > 0 {
		st.Time = s.logs[l][n-1].Time
	}
	return st, nil
}

func (s *shelf) Records(_ context.Context, l Log, q Query) (out []Record, _ error) {
	for _, r := range s.logs[l] {
		if r.Seq >= max(q.From, s.first[l]) && !r.Time.Before(q.Since) && (q.Room == "" || r.Room == q.Room) && len(out) < q.Most {
			out = append(out, r)
		}
	}
	return out, nil
}

// put appends a record; lost: of a danmaku that the copy does not get.
func (s *shelf) put(l Log, room string, lost bool) Record {
	k := [NumLogs]Kind{Moderation, LimitSet, Gift, Danmaku}[l]
	r := Record{Room: room, Kind: k, Time: s.tick(), Event: json.RawMessage(`{}`)}
	if l == Said {
		s.number++
		r.Number, r.Before = s.number, s.before[room]
		s.before[room] = s.number
	}
	if !lost {
		s.last[l]++
		r.Seq = s.last[l]
		s.logs[l] = append(s.logs[l], r)
	}
	return r
}

// logOf is the log that has some of all these kinds.
func logOf(kinds []Kind) Log {
	for l := range NumLogs {
		if !slices.ContainsFunc(kinds, func(k Kind) bool { return !k.in(l) }) {
			return l
		}
	}
	return NumLogs
}

// Whatever happens to the logs, a reader gets each entry in the order of its log, or is told that something is missing where it would be.
func TestACursorNeverSkips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShelf()
		j := Journal{s}
		var f Filter
		if rapid.Bool().Draw(t, "one room") {
			f.Rooms = []string{"a"}
		}
		owed := [NumLogs][]string{}        // ids that the reader has to get, in order
		gone := [NumLogs]map[string]bool{} // of these, what it can't get any more
		for l := range NumLogs {
			gone[l] = map[string]bool{}
		}
		blind := [NumLogs]bool{} // something is missing, and the reader was not told yet
		seen := map[string]bool{}
		var at Cursor
		read := func(limit int) bool {
			page, err := j.Read(t.Context(), at, f, limit)
			if err != nil || len(page.Entries) > limit {
				t.Fatal(len(page.Entries), err)
			}
			for _, e := range page.Entries {
				if e.Kind == Gap {
					var g gap
					if json.Unmarshal(e.Event, &g) != nil || len(g.Of) == 0 || g.Why == "" {
						t.Fatalf("gap %s", e.Event)
					}
					l := logOf(g.Of)
					blind[l] = false
					owed[l] = slices.DeleteFunc(owed[l], func(id string) bool { return gone[l][id] })
					continue
				}
				l := logOf([]Kind{e.Kind})
				if seen[e.ID] {
					continue // at least once
				}
				if blind[l] && f.room() == "" || len(owed[l]) == 0 || owed[l][0] != e.ID {
					t.Fatalf("%s, and not told of what is missing %v before it; owed %v", e.ID, blind[l], owed[l])
				}
				seen[e.ID], owed[l] = true, owed[l][1:]
			}
			at, err = ParseCursor(page.Next.String())
			if err != nil || at != page.Next {
				t.Fatal(page.Next, err)
			}
			return len(page.Entries) > 0 || page.More
		}
		drain := func() {
			for range 10_000 {
				if !read(rapid.IntRange(1, 4).Draw(t, "limit")) {
					return
				}
			}
			t.Fatal("no end")
		}
		drain()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			l := Log(rapid.IntRange(0, int(NumLogs)-1).Draw(t, "log"))
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			default:
				room := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "room")
				if r := s.put(l, room, false); f.wants(r) {
					owed[l] = append(owed[l], idOf(l, r.Seq, r.Time))
				}
			case 6: // the copy lacks one, which is seen at the next of the room
				if l == Said && at[Said].number == s.number && s.number > 0 && len(owed[l]) == 0 && f.room() == "" {
					s.put(l, "a", true)
					blind[l] = true
				}
			case 7: // all but the newest age out
				if n := len(s.logs[l]); n > 0 {
					s.first[l] = s.last[l]
					for _, r := range s.logs[l][:n-1] {
						gone[l][idOf(l, r.Seq, r.Time)] = true
					}
					s.logs[l] = s.logs[l][n-1:]
				}
			case 8: // a crash takes the end of what is written behind
				if l == Said && len(s.logs[l]) > 0 && !blind[l] {
					r := s.logs[l][len(s.logs[l])-1]
					s.logs[l], s.last[l] = s.logs[l][:len(s.logs[l])-1], s.last[l]-1
					gone[l][idOf(l, r.Seq, r.Time)] = true
					owed[l] = slices.DeleteFunc(owed[l], func(id string) bool { return gone[l][id] }) // nobody was shown it
					s.number, s.before = 0, map[string]uint64{}
				}
			case 9:
				read(rapid.IntRange(1, 3).Draw(t, "some"))
			}
		}
		drain()
		for l := range NumLogs {
			if len(owed[l]) > 0 {
				t.Fatalf("log %d: never got %v", l, owed[l])
			}
		}
	})
}

func all(t *testing.T, s *shelf, at Cursor, f Filter) (ids []string, next Cursor) {
	t.Helper()
	page, err := Journal{s}.Read(t.Context(), at, f, 1000)
	if err != nil || page.More {
		t.Fatal(page.More, err)
	}
	for _, e := range page.Entries {
		id := e.ID
		if e.Kind == Gap {
			id = string(e.Event)
		}
		ids = append(ids, id)
	}
	return ids, page.Next
}

func TestGaps(t *testing.T) {
	second := func(n int64) int64 { return 1_000_000 + n }
	for _, c := range []struct {
		name string
		log  Log
		do   func(*shelf)
		want string
	}{
		{"aged", Gifts, func(s *shelf) { s.logs[Gifts], s.first[Gifts] = s.logs[Gifts][4:], 5 },
			fmt.Sprintf(`{"of":["gift"],"why":"aged_out","missed":2,"since":%d,"until":%d}`, second(2), second(5))},
		{"all aged", Gifts, func(s *shelf) { s.logs[Gifts], s.first[Gifts] = nil, 6 },
			fmt.Sprintf(`{"of":["gift"],"why":"aged_out","missed":3,"since":%d}`, second(2))},
		{"another", Gifts, func(s *shelf) { s.name[Gifts] = "two"; s.logs[Gifts], s.first[Gifts] = s.logs[Gifts][4:], 5 },
			fmt.Sprintf(`{"of":["gift"],"why":"another","since":%d,"until":%d}`, second(2), second(5))},
		{"shorter", Said, func(s *shelf) { s.logs[Said], s.last[Said] = s.logs[Said][:1], 1 },
			fmt.Sprintf(`{"of":["audience","custom","danmaku","held","likes","room","session"],"why":"lost","since":%d}`, second(2))},
		{"numbers given again", Said, func(s *shelf) {
			s.logs[Said], s.last[Said] = s.logs[Said][:1], 1
			s.put(Said, "a", false)
			s.put(Said, "a", false)
		},
			fmt.Sprintf(`{"of":["audience","custom","danmaku","held","likes","room","session"],"why":"lost","since":%d,"until":%d}`, second(2), second(6))},
		{"copy lacks some", Said, func(s *shelf) { s.logs[Said][2].Number = 9 },
			fmt.Sprintf(`{"of":["audience","custom","danmaku","held","likes","room","session"],"why":"lost","missed":6,"since":%d,"until":%d}`, second(2), second(3))},
		{"acts of one room go", Acts, func(s *shelf) { s.logs[Acts] = slices.Delete(s.logs[Acts], 2, 4) },
			fmt.Sprintf(`{"of":["announcement","moderation","room"],"why":"aged_out","missed":2,"since":%d,"until":%d}`, second(2), second(5))},
	} {
		s := newShelf()
		s.put(c.log, "a", false)
		s.put(c.log, "a", false)
		_, at := all(t, s, Cursor{}, Filter{})
		for range 3 {
			s.put(c.log, "a", false)
		}
		c.do(s)
		got, next := all(t, s, at, Filter{})
		if len(got) == 0 || got[0] != c.want {
			t.Errorf("%s: got %q\nwant first %s", c.name, got, c.want)
		}
		if again, _ := all(t, s, next, Filter{}); len(again) > 0 {
			t.Errorf("%s: told again: %q", c.name, again)
		}
	}
}

// TestWhatWasErasedIsNotLost: a reader of all rooms misses nothing that was not erased, also where his own place was; one of a room is told
// that it may have been.
func TestWhatWasErasedIsNotLost(t *testing.T) {
	s := newShelf()
	s.put(Said, "a", false)
	s.put(Said, "a", false)
	_, at := all(t, s, Cursor{}, Filter{})
	_, ofRoom := all(t, s, Cursor{}, Filter{Rooms: []string{"a"}})
	for range 5 {
		s.put(Said, "a", false)
	}
	s.logs[Said] = slices.Delete(s.logs[Said], 1, 4) // the place where both are, and two more
	s.erased = true
	got, next := all(t, s, at, Filter{})
	if len(got) != 3 || strings.Contains(got[0], "why") {
		t.Errorf("of all rooms: %q", got)
	}
	if got, _ := all(t, s, ofRoom, Filter{Rooms: []string{"a"}}); len(got) != 4 || !strings.Contains(got[0], `"why":"erased"`) {
		t.Errorf("of one room: %q", got)
	}
	s.put(Said, "a", true)
	s.put(Said, "a", false)
	if got, _ := all(t, s, next, Filter{}); len(got) != 2 || !strings.Contains(got[0], `"why":"lost","missed":1`) {
		t.Errorf("what is lost is not told: %q", got)
	}
}

// What one log takes while another is asked stays behind what that has taken by then.
func TestOrderBetweenLogs(t *testing.T) {
	s := newShelf()
	s.put(Said, "a", false)
	s.once = func() { s.put(Gifts, "a", false); s.put(Said, "a", false); s.put(Acts, "a", false) }
	var got []string
	var at Cursor
	for range 3 {
		var ids []string
		ids, at = all(t, s, at, Filter{})
		for _, id := range ids {
			got = append(got, id[:2])
		}
	}
	if want := []string{"d1", "g1", "d2", "a1"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWhereAReadingBegins(t *testing.T) {
	s := newShelf()
	for range 5 {
		s.put(Gifts, "a", false)
		s.put(Said, "b", false)
	}
	j := Journal{s}
	now, err := j.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if ids, _ := all(t, s, now, Filter{}); len(ids) > 0 {
		t.Errorf("now: %v", ids)
	}
	since, err := j.Since(t.Context(), s.logs[Gifts][3].Time)
	if err != nil {
		t.Fatal(err)
	}
	if ids, _ := all(t, s, since, Filter{Kinds: []Kind{Gift}}); !slices.Equal(ids, []string{"g4", "g5"}) {
		t.Errorf("since the fourth: %v", ids)
	}
	// Who reads gifts and later danmaku too gets those from the beginning.
	_, at := all(t, s, Cursor{}, Filter{Kinds: []Kind{Gift}})
	if ids, _ := all(t, s, at, Filter{}); len(ids) != 5 {
		t.Errorf("danmaku later: %v", ids)
	}
}

func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		j := Journal{s}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		s.once = func() { // at the second look, a moment later
			s.once = func() { s.put(Gifts, "a", false) }
		}
		page, err := j.Wait(ctx, Cursor{}, Filter{}, 10)
		if took := time.Since(began); err != nil || len(page.Entries) != 1 || took < pollEvery || took > 2*pollEvery {
			t.Errorf("%d entries after %v, %v", len(page.Entries), took, err)
		}
		page, err = j.Wait(ctx, page.Next, Filter{}, 10)
		if err != nil || len(page.Entries) != 0 || time.Since(began) < time.Minute {
			t.Errorf("nothing came: %d entries after %v, %v", len(page.Entries), time.Since(began), err)
		}
	})
}

func TestCursorsThatAreNone(t *testing.T) {
	for _, s := range []string{"", "0", "2", "1.", "1.g", "1.g1_0_0", "1.g1_0_0_", "1.gx!_0_0_a", "1.g1_0_-1_a", "now", "1.g" + fmt.Sprintf("%0600d", 1) + "_0_0_a"} {
		if c, err := ParseCursor(s); err == nil {
			t.Errorf("%q is %v", s, c)
		}
	}
	if c, err := ParseCursor("1.z5_0_0_a"); err != nil || c != (Cursor{}) {
		t.Errorf("of a later version: %v, %v", c, err)
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add("1.g1_0_0_a.d2_5_1_b")
	f.Add("1..")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseCursor(s)
		if err != nil {
			return
		}
		if again, err := ParseCursor(c.String()); err != nil || again != c {
			t.Errorf("%q: %v, %v, %v", s, c, again, err)
		}
	})
}
