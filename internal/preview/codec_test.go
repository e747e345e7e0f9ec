package preview

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"liveroom/limit"
)

func recordingOf(t testing.TB, viewers int, length time.Duration) *Recording {
	c := newCrowd(t, rules(t, 1, nil), 3, viewers, Config{})
	c.run(length, viewers, "a", "b")
	return c.rec.Snapshot()
}

func FuzzDecode(f *testing.F) {
	rec := recordingOf(f, 5, 3*time.Second)
	for _, r := range []*Recording{rec, rec.thinned(1), rec.thinned(20), {nodes: []string{"n"}}} {
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
		if all, _ := rec.Requests(); all > 1e5 {
			return // a replay of millions is no fault, but slow
		}
		if _, err := Merge(rec, rec); err != nil {
			t.Fatal(err)
		}
		Replay(rec, set, set)
	})
}

func TestDecodeRefuses(t *testing.T) {
	raw, _ := recordingOf(t, 3, time.Second).MarshalBinary()
	for name, b := range map[string][]byte{
		"nothing":       nil,
		"another magic": append([]byte("abc"), raw[3:]...),
		"a new version": append([]byte("lrp\x02"), raw[4:]...),
		"a cut end":     raw[:len(raw)-1],
		"more bytes":    append(bytes.Clone(raw), 0),
	} {
		if _, err := Decode(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWireBytes(t *testing.T) {
	rec := recordingOf(t, 1000, 20*time.Second)
	raw, _ := rec.MarshalBinary()
	_, events := rec.Requests()
	per := float64(len(raw)) * 1000 / float64(events)
	t.Logf("%d requests in %d bytes: %.0f bytes per 1,000, users and rooms included", events, len(raw), per)
	if per > 16_000 {
		t.Errorf("%.0f bytes per 1,000 requests", per)
	}
}

// TestMergeAlignsNodes: two nodes whose monotonic clocks began differently, one of them later, with different shares.
func TestMergeAlignsNodes(t *testing.T) {
	set := rules(t, 1, nil)
	one := newCrowd(t, set, 1, 200, Config{Node: "n1"})
	two := newCrowd(t, set, 2, 200, Config{Node: "n2"})
	two.now = limit.Instant(time.Hour) // its process is older
	late, err := NewRecorder(Config{Node: "n2", Clock: two.gate.Now, Level: 1, Now: func() time.Time { return epoch.Add(3*time.Second + 4*time.Millisecond) }})
	if err != nil {
		t.Fatal(err)
	}
	two.gate.Observe(late)
	one.run(10*time.Second, 100, "demo")
	two.run(7*time.Second, 100, "demo")
	a, b := one.rec.Snapshot(), late.Snapshot()
	m, err := Merge(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if m.Share() != 0.5 || !m.From().Equal(epoch) || !cmp.Equal(m.Nodes(), []string{"n1", "n2"}) {
		t.Fatalf("share %v from %v nodes %v", m.Share(), m.From(), m.Nodes())
	}
	allA, _ := a.Requests()
	allB, _ := b.Requests()
	if all, sampled := m.Requests(); all < (allA+allB)*98/100 || all > allA+allB || sampled < all/3 || sampled > all*2/3 {
		t.Errorf("%d requests, %d sampled, of %d and %d", all, sampled, allA, allB)
	}
	for _, e := range m.events {
		if m.nodes[m.kinds[e.kind].Node] == "n2" {
			if first := time.Duration(e.at); first < 3*time.Second || first > 4*time.Second {
				t.Errorf("the later node's first request is at %v", first)
			}
			break
		}
	}
	if _, err := Merge(); !errors.Is(err, ErrNothing) {
		t.Errorf("of nothing: %v", err)
	}
}
