package people

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func hashes(from, to int) []Hash {
	out := make([]Hash, 0, to-from)
	for i := from; i < to; i++ {
		out = append(out, HashOf(fmt.Sprint("user-", i)))
	}
	return out
}

// A set counts exactly up to its bound, within three standard errors beyond it, and never less than before; merged and read again it is the same.
func TestSet(t *testing.T) {
	for _, n := range []int{0, 1, exactMost - 1, exactMost, exactMost + 1, 10_000, 50_000} {
		var whole, left, right set
		last := 0
		for i, h := range hashes(0, n) {
			whole.add(h)
			whole.add(h)
			if i%3 > 0 {
				left.add(h)
			}
			if i%3 < 2 {
				right.add(h)
			}
			if i%397 == 0 {
				now, _ := whole.count()
				if now < last {
					t.Fatalf("%d persons: counts %d after %d", n, now, last)
				}
				last = now
			}
		}
		b, err := right.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var read set
		if err := read.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		left.merge(&read)
		got, exact := left.count()
		want, _ := whole.count()
		if exact != (n <= exactMost) || exact && got != n {
			t.Errorf("%d persons: merged %d, exact %v", n, got, exact)
		}
		if off := float64(want-n) / float64(max(n, 1)); off > .024 || off < -.024 {
			t.Errorf("%d persons: counts %d, off by %.4f", n, want, off)
		}
	}
	for _, bad := range [][]byte{{}, {'x'}, {'e', 1}, {'s', 1, 2}, append([]byte{'e'}, make([]byte, 8*(exactMost+1))...)} {
		if err := new(set).UnmarshalBinary(bad); err == nil {
			t.Errorf("%.8x is read", bad)
		}
	}
}

// Persons on several nodes count once: exactly while samples hold all, within 5 % of their number beyond.
func TestTogether(t *testing.T) {
	for _, c := range []struct{ a, b, both, off int }{
		{0, 0, 0, 0}, {10, 0, 0, 0}, {10, 5, 5, 0}, {4000, 4000, 1500, 0}, {30_000, 20_000, 10_000, 500}, {100_000, 50, 50, 300},
	} {
		var a, b sample
		for _, h := range hashes(0, c.a) {
			a.enter(h)
		}
		for _, h := range hashes(c.a-c.both, c.a-c.both+c.b) {
			b.enter(h)
		}
		if len(a.known) > sampleMost {
			t.Errorf("%d are sampled", len(a.known))
		}
		read, err := ParseCrowd(b.crowd().AppendBinary(nil))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := Together(a.crowd(), read), c.a+c.b-c.both; got < want-c.off || got > want+c.off {
			t.Errorf("%+v: %d together, want %d", c, got, want)
		}
	}
	if _, err := ParseCrowd([]byte{1, 0, 9}); err == nil {
		t.Error("a cut crowd is read")
	}
}

// A sample of a room that has emptied is drawn anew, also while people come and go.
func TestSampleAgain(t *testing.T) {
	c := New("n")
	all := hashes(0, 40_000)
	for _, h := range all {
		c.Enter(h, 1)
	}
	for _, h := range all[1000:] {
		c.Leave(h, 2)
	}
	c.Tick(3, func() []Hash {
		c.Leave(all[0], 3)
		c.Enter(all[2000], 3)
		return slices.Clone(all[:1000])
	})
	if got := c.Crowd(); got.People != 1000 || got.level != 0 || len(got.known) != 1000 {
		t.Errorf("%d persons, %d known at level %d", got.People, len(got.known), got.level)
	}
}

const minuteMS = int64(time.Minute / time.Millisecond)

// meet is one round of a node's with the store.
func meet(c *Census, stored *[]byte, now int64, d Doors, there []Hash) {
	if value := c.Meet(*stored, now, d, func() []Hash { return there }); value != nil {
		*stored = value
	}
	if err := c.Stored(*stored, now); err != nil {
		panic(err)
	}
}

// A show goes from opening to closing; one of a room that nobody opens goes on until nobody was there for an hour, or for a day.
func TestShows(t *testing.T) {
	var stored []byte
	c := New("n1")
	begin := int64(1_800_000_000_000)
	who := hashes(0, 10)
	c.Enter(who[0], begin)
	meet(c, &stored, begin+100, Doors{}, who[:1])
	c.Enter(who[1], begin+minuteMS)
	c.Leave(who[0], begin+2*minuteMS)
	c.Danmaku()
	c.Tick(begin+2*minuteMS, nil)
	meet(c, &stored, begin+2*minuteMS, Doors{}, who[1:2])
	now := c.Shows()[0]
	if now.Begin != begin || now.People != 2 || !now.Exact || now.Peak != 2 || now.PeakAt != begin+minuteMS || fmt.Sprint(now.Minutes) != "[{1 0} {2 0} {1 1}]" {
		t.Fatalf("the first show: %+v", now)
	}

	c.Leave(who[1], begin+3*minuteMS)
	later := begin + 70*minuteMS
	c.Enter(who[2], later)
	meet(c, &stored, later, Doors{}, who[2:3])
	if s := c.Shows(); len(s) != 2 || s[0].Begin != later || len(s[1].Minutes) != 3 || s[0].People != 1 || s[1].End != begin+2*minuteMS || s[1].People != 2 {
		t.Fatalf("after an hour: %+v", s)
	}

	closed := later + 5*minuteMS
	meet(c, &stored, closed+10, Doors{Closed: closed, Shut: true}, who[2:3])
	c.Enter(who[3], closed+minuteMS) // waits for the next show
	meet(c, &stored, closed+minuteMS, Doors{Closed: closed, Shut: true}, who[2:4])
	if s := c.Shows(); s[0].End != closed || s[0].People != 1 {
		t.Fatalf("closed: %+v", s)
	}
	opened := closed + 2*minuteMS
	meet(c, &stored, opened+10, Doors{Opened: opened, Closed: closed}, who[2:4])
	if s := c.Shows(); len(s) != 3 || s[0].Begin != opened || s[0].End != 0 || s[0].People != 2 || s[0].Peak != 2 {
		t.Fatalf("opened: %+v", s)
	}
	for day := range 12 {
		next := opened + int64(day+1)*24*60*minuteMS
		c.Tick(next-1, nil)
		meet(c, &stored, next, Doors{Opened: opened, Closed: closed}, who[2:4])
		if s := c.Shows(); s[0].Begin != next || len(s) > 1+pastMost {
			t.Fatalf("day %d: %d shows, %+v", day, len(s), s[0])
		}
	}

	// A room that is here again, or on another node, goes on with its show; one that is here again the next day does not.
	begin = c.Shows()[0].Begin
	other := New("n2")
	other.Enter(who[9], begin+1)
	meet(other, &stored, begin+2, Doors{Opened: opened}, who[9:])
	if s := other.Shows()[0]; s.Begin != begin || s.People != 3 {
		t.Fatalf("another node: %+v", s)
	}
	again := New("n3")
	again.Enter(who[8], begin+100*minuteMS)
	meet(again, &stored, begin+100*minuteMS, Doors{Opened: opened}, who[8:9])
	if s := again.Shows(); s[0].Begin <= begin || s[0].People != 1 || s[1].People != 3 {
		t.Fatalf("after an hour, another node: %+v", s)
	}
}

// Who is erased has no line in the shows of before, and what was refused is counted on.
func TestWithout(t *testing.T) {
	line := func(user, name string, n int) Refused {
		return Refused{User: user, Name: name, Action: "danmaku", Reason: "rate_limited", Rule: "r", Count: n}
	}
	shows := []Told{{Begin: 20, Refused: []Refused{line("ann", "Nick", 5)}}, {Begin: 10, Refused: []Refused{line("ann", "Nick", 7), line("bob", "Bob", 4), line("", "", 2)}}}
	got := Without(shows, func(user string, since int64) bool { return user == "ann" && since <= 15 })
	want := []Told{shows[0], {Begin: 10, Refused: []Refused{line("", "", 9), line("bob", "Bob", 4)}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if shows[1].Refused[0].User != "ann" {
		t.Error("what was given is changed")
	}
}

// Refusals of all nodes come together, the largest by name; nothing is counted twice.
func TestRefusals(t *testing.T) {
	var stored []byte
	nodes := []*Census{New("n1-1"), New("n2-1")}
	for i, c := range nodes {
		c.Enter(HashOf("u"), 1)
		for range 100 {
			c.Refuse(Refused{User: "loud", Name: fmt.Sprint("Loud", i), Action: "danmaku", Reason: "rate_limited", Rule: "r", Count: 1})
		}
		for n := range 1000 {
			c.Refuse(Refused{User: fmt.Sprint("u", n), Action: "danmaku", Reason: "rate_limited", Rule: "r", Count: 1})
		}
	}
	for range 3 {
		for _, c := range nodes {
			meet(c, &stored, 5, Doors{}, nil)
		}
	}
	got := nodes[0].Shows()[0].Refused
	if len(got) > refusedMost || counted(got) != 2200 {
		t.Errorf("%d lines of %d refusals", len(got), counted(got))
	}
	i := slices.IndexFunc(got, func(r Refused) bool { return r.User == "loud" })
	if i < 0 || got[i].Count != 200 {
		t.Errorf("the loudest is line %d of %+v", i, got)
	}
	s := show{}
	for part := range partsMost + 5 {
		s.refuse(fmt.Sprint(part), Refused{User: "u", Count: part + 1})
	}
	if len(s.refused) != partsMost {
		t.Errorf("%d parts", len(s.refused))
	}
}

// Several nodes count a room, die, come back and meet the store in any order; writes may be lost to who is faster. What the store tells of a
// show never falls, and once all have met it, it is right.
func TestCensusModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const nodes = 3
		var stored []byte
		now, starts := int64(1_800_000_000_000), 0
		var all [nodes]*Census
		var here [nodes]map[Hash]bool
		ever := map[Hash]bool{} // in the show, as far as the store may know
		lost := map[Hash]bool{} // counted by a node that died before it met the store
		fresh := [nodes]map[Hash]bool{}
		start := func(i int) {
			starts++
			all[i], here[i], fresh[i] = New(fmt.Sprint(starts)), map[Hash]bool{}, map[Hash]bool{}
		}
		for i := range nodes {
			start(i)
		}
		there := func(i int) func() []Hash {
			return func() (out []Hash) {
				for h := range here[i] {
					out = append(out, h)
				}
				return out
			}
		}
		people, peak := 0, 0
		check := func() {
			if len(stored) == 0 {
				return
			}
			s, err := Shows(stored, now)
			if err != nil || len(s) != 1 {
				t.Fatal(err, s)
			}
			if s[0].People < people || s[0].Peak < peak || s[0].People > len(ever) {
				t.Fatalf("tells %d persons after %d, of %d; peak %d after %d", s[0].People, people, len(ever), s[0].Peak, peak)
			}
			people, peak = s[0].People, s[0].Peak
		}
		meets := func(i int) {
			meet(all[i], &stored, now, Doors{}, there(i)())
			clear(fresh[i])
			check()
		}
		node := rapid.IntRange(0, nodes-1)
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				i, h := node.Draw(t, "node"), HashOf(fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "user")))
				if here[i][h] {
					return
				}
				here[i][h], ever[h], fresh[i][h] = true, true, true
				delete(lost, h)
				all[i].Enter(h, now)
			},
			"leave": func(t *rapid.T) {
				i := node.Draw(t, "node")
				for h := range here[i] {
					delete(here[i], h)
					all[i].Leave(h, now)
					break
				}
			},
			"hear": func(t *rapid.T) {
				i := node.Draw(t, "node")
				var others []Crowd
				union := map[Hash]bool{}
				for j := range nodes {
					for h := range here[j] {
						union[h] = true
					}
					if j != i && len(here[j]) > 0 {
						others = append(others, all[j].Crowd())
					}
				}
				all[i].Elsewhere(others, false, now)
				if got := all[i].Now(); got != len(union) {
					t.Fatalf("%d persons now, want %d", got, len(union))
				}
			},
			"meet": func(t *rapid.T) { meets(node.Draw(t, "node")) },
			"lose": func(t *rapid.T) { // another was faster: written, and not stored
				i := node.Draw(t, "node")
				_ = all[i].Meet(stored, now, Doors{}, there(i))
			},
			"die": func(t *rapid.T) {
				i := node.Draw(t, "node")
				for h := range fresh[i] {
					lost[h] = true
				}
				start(i)
			},
			"time": func(t *rapid.T) {
				now += rapid.Int64Range(1, 90_000).Draw(t, "ms")
				for i := range nodes {
					all[i].Tick(now, there(i))
				}
				if len(stored) > 0 {
					_, s, _ := parseRecord(stored)
					if now-s.begin > 50*minuteMS { // the show goes on in this test
						t.Skip()
					}
				}
			},
			"": func(t *rapid.T) { check() },
		})
		for range 2 {
			for i := range nodes {
				meets(i)
			}
		}
		for h := range ever {
			if lost[h] {
				delete(ever, h)
			}
		}
		if people < len(ever) {
			t.Fatalf("%d persons of %d", people, len(ever))
		}
	})
}

// Whatever is read instead of a record does no harm.
func FuzzRecord(f *testing.F) {
	c := New("n")
	c.Enter(1, 5)
	f.Add(c.Meet(nil, 6, Doors{}, func() []Hash { return nil }))
	f.Add([]byte(`{"show":{"begin":1,"people":"ZQ"}}`))
	f.Fuzz(func(t *testing.T, stored []byte) {
		c := New("n")
		c.Enter(7, 1000)
		value := c.Meet(stored, 2000, Doors{}, func() []Hash { return []Hash{7} })
		if value == nil {
			value = stored
		}
		if s, err := Shows(value, 3000); err != nil || len(s) == 0 {
			t.Fatalf("%s: %v", value, err)
		}
	})
}

// What a person who comes and goes costs, in a room of few and of many, and what a room holds of them.
func BenchmarkCensus(b *testing.B) {
	for _, n := range []int{10, 4000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all := hashes(0, n)
			const rooms = 20
			var before, after runtime.MemStats
			held := make([]*Census, rooms)
			runtime.GC()
			runtime.ReadMemStats(&before)
			for i := range held {
				held[i] = New("n")
				for _, h := range all {
					held[i].Enter(h, 1)
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			c := held[0]
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				c.Leave(all[i%n], 2)
				c.Enter(all[i%n], 2)
				i++
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/rooms, "B/room")
			b.ReportMetric(float64(len(c.Crowd().AppendBinary(nil))), "B/sample")
			runtime.KeepAlive(held)
		})
	}
}

// What a room's round with the store costs, without the store.
func BenchmarkMeet(b *testing.B) {
	for _, n := range []int{10, 4000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := New("n")
			for _, h := range hashes(0, n) {
				c.Enter(h, 1)
			}
			stored := c.Meet(nil, 2, Doors{}, func() []Hash { return nil })
			b.ReportAllocs()
			for b.Loop() {
				c.Meet(stored, 3, Doors{}, func() []Hash { return nil })
			}
			b.ReportMetric(float64(len(stored)), "B/record")
		})
	}
}
