package preview

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"liveroom/limit"
)

func recordingOf(t testing.TB, viewers int, length time.Duration) *Recording {
	c := newCrowd(t, rules(t, 1, nil), 3, viewers)
	c.run(length, viewers, "a", "b")
	return c.rec.snapshot()
}

func FuzzDecode(f *testing.F) {
	rec := recordingOf(f, 5, 3*time.Second)
	for _, r := range []*Recording{rec, rec.thinned(1), rec.thinned(20), {traits: traits{Nodes: []string{"n"}, Users: []user{{}}}}} {
		raw, _ := r.MarshalBinary()
		f.Add(raw)
		f.Add(raw[:len(raw)/2])
	}
	set := rules(f, 1, nil)
	f.Fuzz(func(t *testing.T, raw []byte) {
		rec, err := Decode(raw)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("%v is not ErrMalformed", err)
			}
			return
		}
		again, _ := rec.MarshalBinary()
		back, err := Decode(again)
		if err != nil {
			t.Fatal(err)
		}
		third, _ := back.MarshalBinary()
		if !bytes.Equal(again, third) {
			t.Fatal("what was decoded does not encode the same again")
		}
		if all, _ := rec.requests(); all > 1e5 {
			return // a replay of millions is no fault, but slow
		}
		Merge(rec, rec)
		Replay(rec, set, set)
	})
}

func TestDecodeRefuses(t *testing.T) {
	raw, _ := recordingOf(t, 3, time.Second).MarshalBinary()
	for name, b := range map[string][]byte{
		"nothing":         nil,
		"another magic":   append([]byte("abc"), raw[3:]...),
		"an old version":  append([]byte("lrp\x01"), raw[4:]...),
		"a cut end":       raw[:len(raw)-1],
		"more bytes":      append(bytes.Clone(raw), 0),
		"a user too many": append(bytes.Clone(raw), 0, 0x7f, 0, 1, 0, 0, 0),
		"two of one user": append(bytes.Clone(raw), 0, 1, 0, 2, 0, 0, 0),
	} {
		if _, err := Decode(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWireBytes(t *testing.T) {
	rec := recordingOf(t, 1000, 20*time.Second)
	raw, _ := rec.MarshalBinary()
	per := float64(len(raw)) * 1000 / float64(len(rec.records))
	t.Logf("%d records in %d bytes: %.0f bytes per 1,000, users and rooms included", len(rec.records), len(raw), per)
	if per > 16_000 {
		t.Errorf("%.0f bytes per 1,000 records", per)
	}
}

// TestMergeAlignsNodes: two nodes whose monotonic clocks began differently, one of them later, with different shares.
func TestMergeAlignsNodes(t *testing.T) {
	set := rules(t, 1, nil)
	one := newCrowd(t, set, 1, 200)
	two := newCrowd(t, set, 2, 200)
	two.now = limit.Instant(time.Hour) // its process is older
	late := newRecorder("n2", two.gate.Now, epoch.Add(3*time.Second+4*time.Millisecond), Window, mostBytes)
	late.level.Store(1)
	two.gate.Observe(late)
	one.run(10*time.Second, 100, "demo")
	two.run(7*time.Second, 100, "demo")
	a, b := one.rec.snapshot(), late.snapshot()
	m := Merge(a, b)
	if share(m.Level) != 0.5 || m.Base != epoch.UnixNano() || !cmp.Equal(m.Nodes, []string{"n1", "n2"}) {
		t.Fatalf("share %v from %v nodes %v", share(m.Level), m.Base, m.Nodes)
	}
	crowdedSet := rules(t, 1, crowded(t))
	if got := unjudged(m.Attrs, crowdedSet); slices.Contains(got, "newcomers") {
		t.Errorf("not judged: %v", got)
	}
	before := *b
	before.Attrs = false // of a node of an earlier version
	if got := unjudged(Merge(a, &before).Attrs, crowdedSet); !slices.Contains(got, "newcomers") {
		t.Errorf("judged without attributes; not judged: %v", got)
	}
	allA, _ := a.requests()
	allB, _ := b.requests()
	if all, sampled := m.requests(); all < (allA+allB)*98/100 || all > allA+allB || sampled < all/3 || sampled > all*2/3 {
		t.Errorf("%d requests, %d sampled, of %d and %d", all, sampled, allA, allB)
	}
	for _, e := range m.records {
		if strings.HasPrefix(m.Users[e.user].Name, "u2-") { // of the later node's crowd
			if first := time.Duration(e.at); first < 3*time.Second || first > 4*time.Second {
				t.Errorf("the later node's first request is at %v", first)
			}
			break
		}
	}
}
