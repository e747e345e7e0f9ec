package frame

import (
	"bytes"
	"strings"
	"testing"

	"liveroom/protocol"
)

// Collected events make the same frame as those that come at once, whatever length its header has.
func TestEvents(t *testing.T) {
	for _, n := range []int{1, 120, 121, 122, 123, 65_531, 65_532, 65_533, 70_000} { // around 126 and 65,536 of payload
		var e Events
		for range 2 { // it begins anew
			first, second := []byte(`1`), []byte(strings.Repeat("2", n))
			e.Add(first)
			e.Add(second)
			all := bytes.Join([][]byte{first, second}, []byte(","))
			if e.Len() != len(all) {
				t.Fatalf("%d bytes, says %d", len(all), e.Len())
			}
			if got, want := e.Take(), protocol.NewEventFrame(all).Bytes(); !bytes.Equal(got, want) || e.Len() != 0 {
				t.Fatalf("%d bytes of events: % x…, want % x…", len(all), got[:12], want[:12])
			}
		}
	}
}

// A close frame carries its code and what fits of the reason, and is read back as it was meant.
func TestClose(t *testing.T) {
	for _, reason := range []string{"", "bye", strings.Repeat("x", maxReason), strings.Repeat("x", maxReason+1)} {
		f := Close(protocol.CloseKicked, reason)
		if len(f) != int(f[1])+2 || f[0] != 0x88 || f[1] > maxControlPayload || !strings.HasPrefix(reason, string(f[4:])) {
			t.Fatalf("% x for %q", f, reason)
		}
		if code, fault := ParseClose(f[2:]); code != protocol.CloseKicked || fault != 0 {
			t.Errorf("read as %d, %d", code, fault)
		}
	}
}
