package link

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSeenRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Seen{rapid.Uint64().Draw(t, "gift"), rapid.Uint64().Draw(t, "revision"), rapid.Int64().Draw(t, "likes"), rapid.Uint64().Draw(t, "act")}
		if got, ok := ParseSeen(want.Append(nil)); !ok || got != want {
			t.Fatalf("%+v became %+v", want, got)
		}
	})
}

func FuzzParseSeen(f *testing.F) {
	for _, s := range []string{"41 7 345", "0 0 0", "", "1 2", "1 2 3 4", "-1 2 3", "18446744073709551616 0 0", "a b c"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, ok := ParseSeen(b)
		if !ok {
			return
		}
		if again, ok := ParseSeen(v.Append(nil)); !ok || again != v {
			t.Errorf("%q: %+v, then %+v", b, v, again)
		}
	})
}
