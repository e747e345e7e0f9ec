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
	}
}

// TestReplayEqualsTheGate: with every user sampled, playing the recorded traffic to the rules that were in force counts
// what the gate counted, to the last one, in every scope; also after a trip over the wire.
func TestReplayEqualsTheGate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		set := rules(t, 1, crowded(t))
		c := newCrowd(t, set, rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(1, 60).Draw(rt, "viewers"), Config{})
		c.run(time.Duration(rapid.IntRange(1, 20).Draw(rt, "seconds"))*time.Second, rapid.IntRange(1, 40).Draw(rt, "rate"), "a", "b")
		rec := overTheWire(rt, c.rec.Snapshot())
		d := newDuel(set, set, rec.base, rec.base)
		d.feed(rec)
		for w := range worlds {
			if diff := cmp.Diff(c.gate.Counts(), d.worlds[w].gate.Counts()); diff != "" {
				rt.Fatalf("the gate's counts (-) differ from world %d's (+):\n%s", w, diff)
			}
		}
		if len(rec.rest) > 0 {
			rt.Fatalf("%d steps of unsampled load though all are sampled: %+v", len(rec.rest), rec.rest[0])
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
	if diff := cmp.Diff(rec, back, cmp.AllowUnexported(Recording{}, kind{}, event{}, load{}), cmp.Comparer(func(a, b user) bool { return a == b })); diff != "" {
		t.Fatalf("over the wire (-sent +got):\n%s", diff)
	}
	return back
}
