package frame

import (
	"bytes"
	"compress/flate"
	"net/http"
	"strings"
	"testing"

	"liveroom/protocol"
)

// deflated is the payload of a message as a client sends it that has negotiated permessage-deflate.
func deflated(message string) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, 6)
	_, _ = w.Write([]byte(message))
	_ = w.Flush()
	return bytes.TrimSuffix(b.Bytes(), []byte(protocol.DeflateTail))
}

func FuzzAcceptDeflate(f *testing.F) {
	f.Add("permessage-deflate; client_max_window_bits")
	f.Add(`permessage-deflate; server_max_window_bits="15"; x=,permessage-deflate`)
	f.Fuzz(func(t *testing.T, offers string) {
		answer := AcceptDeflate(http.Header{"Sec-Websocket-Extensions": {offers}})
		if answer != "" && (!strings.HasPrefix(answer, deflateExtension+"; server_no_context_takeover; client_no_context_takeover") || !strings.Contains(offers, deflateExtension)) {
			t.Fatalf("%q: %q", offers, answer)
		}
	})
}

// FuzzInflate: whatever a client sends is read to its end within the limit, or refused.
func FuzzInflate(f *testing.F) {
	f.Add(deflated(`{"op":"ping","id":"x"}`))
	f.Add([]byte("\x03\x00"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		out, err := inflate(bytes.Clone(b), nil)
		switch {
		case err == nil && len(out) > protocol.MaxRequestBytes, len(out) > protocol.MaxRequestBytes+1, cap(out) > 2*protocol.MaxRequestBytes:
			t.Fatalf("%d bytes, %d of memory, %v", len(out), cap(out), err)
		}
	})
}
