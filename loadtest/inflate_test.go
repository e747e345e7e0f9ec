package main

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"liveroom/protocol"
)

func TestInflations(t *testing.T) {
	var c inflations
	frames := map[string]*protocol.Frame{}
	for i := range 300 { // more than are remembered
		var b protocol.Batch
		for j := range 5 {
			b.Add(protocol.ClassDanmaku, protocol.AppendDanmaku(nil, protocol.Danmaku{MID: strconv.Itoa(i), Text: strings.Repeat("来了", j)}))
		}
		out := b.Build()
		frames[string(out.Full().Payload())] = out.FullDeflated()
	}
	for range 2 {
		for want, f := range frames {
			if got, err := c.of(f.Payload()); err != nil || string(got) != want {
				t.Fatalf("%v: %s, want %s", err, got, want)
			}
		}
	}
	if _, err := c.of([]byte{0xff, 0xff}); err == nil {
		t.Error("what is no DEFLATE was read")
	}
	for want, f := range frames {
		c.of(f.Payload())
		if n := testing.AllocsPerRun(10, func() { c.of(f.Payload()) }); n != 0 {
			t.Errorf("%v allocations for %d bytes met before", n, len(want))
		}
		break
	}
}

func TestDeflatedFramesNeedAnAgreement(t *testing.T) {
	deflated := protocol.Deflate(protocol.NewFrame(bytes.Repeat([]byte("x"), 1000))).Bytes()
	if _, _, err := readHeader(deflated, false); err != errReservedBit {
		t.Errorf("without: %v", err)
	}
	h, ok, err := readHeader(deflated, true)
	if err != nil || !ok || h.opcode != opText|opDeflated || h.size+h.payload != len(deflated) {
		t.Errorf("with: %+v %v", h, err)
	}
	for _, first := range []byte{0x41, 0xc0, 0xc9, 0xc2} {
		if _, _, err := readHeader([]byte{first, 0}, true); err != errDeflatedFragment {
			t.Errorf("%#x: %v", first, err)
		}
	}
}

// With -compress nothing is lost or misread, and the bytes counted are those that came.
func TestCompress(t *testing.T) {
	t.Parallel()
	args := []string{"-viewers", "10", "-rate", "50", "-duration", "300ms", "-warmup", "0s", "-slo", "danmaku_loss=0,unreadable=0,closes=0"}
	plain, _ := loadtest(t, exitOK, append([]string{"fanout", "-url", startFake(t, &fakeServer{deflate: true}).URL}, args...)...)
	r, out := loadtest(t, exitOK, append([]string{"fanout", "-compress", "-url", startFake(t, &fakeServer{deflate: true}).URL}, args...)...)
	if r.Delivery.Expected != 10*r.Classes["danmaku"].Admitted || r.Delivery.Expected == 0 {
		t.Errorf("delivery %+v", *r.Delivery)
	}
	if v := r.Values["deflated_to"]; v < 0.3 || v > 0.9 || !strings.Contains(out, "compression: deflated to") {
		t.Errorf("deflated to %v, said %s", v, out)
	}
	if a, b := r.Values["bytes_per_delivery"], plain.Values["bytes_per_delivery"]; a >= b {
		t.Errorf("%.0f bytes per delivery, %.0f without", a, b)
	}
	var errs bytes.Buffer
	code := run(t.Context(), append([]string{"fanout", "-compress", "-quiet", "-url", startFake(t, &fakeServer{}).URL}, args...), &bytes.Buffer{}, &errs)
	if code == exitOK || !strings.Contains(errs.String(), "did not agree to permessage-deflate") {
		t.Errorf("code %d, said %s", code, errs.String())
	}
}
