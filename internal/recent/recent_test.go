package recent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"liveroom/limit"
)

func reading(version uint64, allow int) Reading {
	return Reading{
		Counts: []limit.Count{{Rule: "r", Scope: "user", Action: "danmaku", Outcome: "allow", N: int64(allow)}},
		Totals: map[string]int64{"sent": int64(allow) * 10}, Gauges: map[string]int64{"sessions": int64(allow) % 7},
		Version: version, Kind: "publish",
	}
}

func TestRingTellsGrowth(t *testing.T) {
	r := NewRing()
	if got := r.Traffic(); len(got.Series) != 0 || got.Series == nil || got.Changes == nil {
		t.Errorf("an empty ring tells %+v", got)
	}
	for i, allow := range []int{1000, 1003, 1003, 1010, 4} { // the last one began anew
		r.Take(reading(map[bool]uint64{false: 1, true: 2}[i >= 3], allow))
	}
	want := Traffic{
		StepMS: 5000, Nodes: 1,
		Series:  []Series{{"r", "user", "danmaku", "allow", []int64{3, 0, 7, 4}}},
		Figures: map[string][]int64{"sent": {30, 0, 70, 40}, "sessions": {2, 2, 2, 4}},
		Changes: []Change{{AgeMS: 5000, Version: 2, Kind: "publish"}},
	}
	if diff := cmp.Diff(want, r.Traffic()); diff != "" {
		t.Error(diff)
	}
}

// TestEmptyIsAList: a node that has just begun tells of nothing, in the shape of something.
func TestEmptyIsAList(t *testing.T) {
	r := NewRing()
	r.Take(reading(1, 5))
	text, err := json.Marshal(Merge(r.Traffic()))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "null") {
		t.Error(string(text))
	}
}

func TestRingForgets(t *testing.T) {
	r := NewRing()
	r.Take(reading(1, 0))
	r.Take(reading(2, 5))
	for range Steps - 1 {
		r.Take(reading(2, 5))
	}
	if got := r.Traffic(); len(got.Series) != 1 || got.Series[0].N[0] != 5 || len(got.Series[0].N) != Steps || len(got.Changes) != 1 {
		t.Fatalf("within the window: %+v", got)
	}
	r.Take(reading(2, 5))
	if got := r.Traffic(); len(got.Series) != 0 || len(got.Changes) != 0 || len(got.Figures["sent"]) != Steps {
		t.Errorf("beyond the window: %+v", got)
	}
}

// TestRingIsTheTruth compares a ring with all that was ever read.
func TestRingIsTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grown := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 3*Steps).Draw(t, "grown")
		r, total := NewRing(), 0
		r.Take(reading(1, 0))
		for _, n := range grown {
			total += n
			r.Take(reading(1, total))
		}
		last := grown[max(0, len(grown)-Steps):]
		sum := 0
		for i, n := range last {
			sum += n
			if got := r.Traffic(); len(got.Series) > 0 && got.Series[0].N[i] != int64(n) {
				t.Fatalf("step %d of %d: %d, want %d", i, len(last), got.Series[0].N[i], n)
			}
		}
		if got := r.Traffic(); (sum > 0) != (len(got.Series) > 0) {
			t.Fatalf("%d in the window, %d series", sum, len(got.Series))
		}
	})
}

func TestMergeLaysNewestOnNewest(t *testing.T) {
	a := Traffic{Nodes: 1, StepMS: 5000, Changes: []Change{{Version: 3}}, Series: []Series{{"r", "user", "like", "allow", []int64{1, 2, 3}}},
		Figures: map[string][]int64{"sessions": {7, 7, 7}}, Top: []Refused{{User: "ann", Refused: 5}}}
	b := Traffic{Nodes: 2, Series: []Series{{"r", "user", "like", "allow", []int64{10}}, {"s", "room", "like", "reject", []int64{4}}},
		Figures: map[string][]int64{"sessions": {1}}, Top: []Refused{{User: "bob", Refused: 6}, {User: "ann", Refused: 2, Rule: "r"}}}
	want := Traffic{Nodes: 3, StepMS: 5000, Changes: a.Changes, Series: []Series{{"r", "user", "like", "allow", []int64{1, 2, 13}}, {"s", "room", "like", "reject", []int64{4}}},
		Figures: map[string][]int64{"sessions": {7, 7, 8}}, Top: []Refused{{User: "ann", Refused: 7, Rule: "r"}, {User: "bob", Refused: 6}}}
	if diff := cmp.Diff(want, Merge(a, b)); diff != "" {
		t.Error(diff)
	}
	if a.Series[0].N[2] != 3 {
		t.Error("merging changed what was merged")
	}
}

func refusal(at time.Duration, user string, v limit.Verdict) limit.Observed {
	return limit.Observed{Now: limit.Instant(at), Request: limit.Request{Action: limit.Danmaku, User: user, Room: "demo"}, Decision: limit.Decision{Verdict: v, Rule: "r"}}
}

// TestTopFindsTheLoudest among ten thousand others, with a bounded memory.
func TestTopFindsTheLoudest(t *testing.T) {
	top := &Top{}
	const others = 10_000
	for i := range others {
		at := time.Duration(i) * 50 * time.Millisecond
		top.Observe(refusal(at, fmt.Sprint("u", i), limit.Reject))
		if i%10 == 0 {
			top.Observe(refusal(at, "loud", limit.Reject))
			top.Observe(refusal(at, "shown to itself", limit.Degrade))
		}
		top.Observe(refusal(at, "", limit.Reject))
		top.Observe(refusal(at, "quiet", limit.Allow))
	}
	now := limit.Instant(others * 50 * time.Millisecond)
	got := top.Users(now)
	if len(got) != TopUsers || got[0].User != "loud" || got[0].Room != "demo" || got[0].Rule != "r" || got[0].Action != "danmaku" {
		t.Fatalf("%+v", got[:3])
	}
	// Each minute counts too high by a 128th of its refusals at most.
	if n := got[0].Refused; n < 1000 || n > 1000+others*12/10/watched {
		t.Errorf("loud was refused 1000 times, found %d", n)
	}
	for _, m := range top.minutes {
		if len(m.users) > watched {
			t.Errorf("%d users in a minute", len(m.users))
		}
	}
	if got := top.Users(now.Add(Window + minute)); len(got) != 0 {
		t.Errorf("a window later: %+v", got)
	}
}
