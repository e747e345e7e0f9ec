package preview

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"liveroom/limit"
)

// crowded makes the room's rules bite, too.
func crowded(t testing.TB) func(*limit.Spec) {
	return func(s *limit.Spec) {
		r := rule(t, s, "danmaku-room")
		r.Tiers, r.Limit, r.Degrade = nil, limit.Limit{Rate: 15, Burst: 20}, &limit.Limit{Rate: 5, Burst: 5}
		s.Rules = append(s.Rules, limit.Rule{Name: "newcomers", Action: limit.StringList{"danmaku"}, Scope: "room", Where: map[string]string{"level": "<5"}, Limit: limit.Limit{Rate: 2, Burst: 4}})
	}
}

// TestReplayEqualsTheGate: with every user sampled, playing the recorded traffic to the rules that were in force counts
// what the gate counted, to the last one, in every scope; also after a trip over the wire.
func TestReplayEqualsTheGate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		set := rules(t, 1, crowded(t))
		c := newCrowd(t, set, rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(1, 60).Draw(rt, "viewers"))
		c.run(time.Duration(rapid.IntRange(1, 20).Draw(rt, "seconds"))*time.Second, rapid.IntRange(1, 40).Draw(rt, "rate"), "a", "b")
		rec := overTheWire(rt, c.rec.snapshot())
		d := newComparison(set, set, rec.Base, rec.Base)
		d.feed(rec)
		for w := range sides {
			if diff := cmp.Diff(c.gate.Counts(), d.sides[w].gate.Counts()); diff != "" {
				rt.Fatalf("the gate's counts (-) differ from side %d's (+):\n%s", w, diff)
			}
		}
		if all, sampled := rec.requests(); all != sampled {
			rt.Fatalf("%d of %d requests are unsampled load though all are sampled", all-sampled, all)
		}
	})
}

func overTheWire(t rapid.TB, rec *Recording) *Recording {
	raw, err := rec.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rec, back, cmp.AllowUnexported(Recording{}, record{}), cmp.Comparer(func(a, b user) bool { return a == b })); diff != "" {
		t.Fatalf("over the wire (-sent +got):\n%s", diff)
	}
	return back
}
