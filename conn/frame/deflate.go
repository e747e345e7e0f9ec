package frame

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"

	"liveroom/protocol"
)

// deflateExtension is the one extension that is negotiated (RFC 7692).
const deflateExtension = "permessage-deflate"

// AcceptDeflate answers the offers of permessage-deflate in a handshake: with the value of Sec-WebSocket-Extensions for the
// first one that can be met, "" when there is none. No context is ever taken over, in neither direction: one deflated frame
// serves everybody, and no session keeps a window. coder's own negotiation is left off, since it would bring coder's own
// compression with it.
//
// Safari offers permessage-deflate without parameters, Chromium with client_max_window_bits, Firefox without. The
// x-webkit-deflate-frame of Safari before 13 is another extension and goes unanswered.
func AcceptDeflate(h http.Header) string {
	for _, v := range h.Values("Sec-WebSocket-Extensions") {
		for offer := range strings.SplitSeq(v, ",") {
			if answer := meetOffer(offer); answer != "" {
				return answer
			}
		}
	}
	return ""
}

// meetOffer answers one offer; "" declines it. An offer is declined whole for anything that RFC 7692, section 7, does not
// know, so a client can list another one behind it.
func meetOffer(offer string) string {
	name, rest, more := strings.Cut(offer, ";")
	if strings.TrimSpace(name) != deflateExtension {
		return ""
	}
	answer := deflateExtension + "; server_no_context_takeover; client_no_context_takeover"
	seen := make(map[string]bool, 4)
	for more {
		var param string
		param, rest, more = strings.Cut(rest, ";")
		key, value, hasValue := strings.Cut(strings.TrimSpace(param), "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		if seen[key] {
			return ""
		}
		seen[key] = true
		switch key {
		case "server_no_context_takeover", "client_no_context_takeover":
			if hasValue {
				return ""
			}
		case "client_max_window_bits":
			// A smaller window than ours is ours to read as well, so there is nothing to ask for.
			if hasValue && !windowBits(value) {
				return ""
			}
		case "server_max_window_bits":
			// The shared frames have a window of 15 bits and no other.
			if value != "15" {
				return ""
			}
			answer += "; server_max_window_bits=15"
		default:
			return ""
		}
	}
	return answer
}

// windowBits reports whether v is 8 to 15, without leading zeros (RFC 7692, section 7.1.2).
func windowBits(v string) bool {
	switch v {
	case "8", "9", "10", "11", "12", "13", "14", "15":
		return true
	}
	return false
}

// deflateSlack is what a deflated message may be longer on the wire than the message itself, so that one of exactly the
// limit passes which does not compress. Stored blocks cost five bytes each.
const deflateSlack = 512

// inflater is a decompressor, which weighs 40 KiB, with its input. There are as many as messages are handled at a time: none
// waits for the network.
type inflater struct {
	in bytes.Reader
	r  io.ReadCloser
}

var inflaters = sync.Pool{New: func() any {
	f := new(inflater)
	f.r = flate.NewReader(&f.in)
	return f
}}

// inflateTail ends the message for the decompressor: what every message leaves out, and a final empty block.
const inflateTail = protocol.DeflateTail + "\x01\x00\x00\xff\xff"

// errTooBig says that a message is larger than any request may be.
var errTooBig = errors.New("larger than the limit")

// Unpack inflates a message that came deflated. A fault is the code to close with.
func (m *Message) Unpack() (fault protocol.CloseCode) {
	if !m.deflated {
		return 0
	}
	text, err := inflate(m.Text, m.spare)
	m.Text, m.spare, m.deflated = text, m.Text, false
	switch err {
	case nil:
		return 0
	case errTooBig:
		return protocol.CloseTooBig
	default:
		return protocol.CloseProtocol
	}
}

// inflate returns the message of which deflated is the compressed form, in out's array if it fits. It stops at the limit,
// whatever else there may be.
func inflate(deflated, out []byte) ([]byte, error) {
	f := inflaters.Get().(*inflater)
	defer func() {
		f.in.Reset(nil) // the input is the caller's
		inflaters.Put(f)
	}()
	f.in.Reset(append(deflated, inflateTail...))
	if err := f.r.(flate.Resetter).Reset(&f.in, nil); err != nil {
		return nil, err
	}
	if out = out[:0]; cap(out) == 0 {
		out = make([]byte, 0, firstBytes)
	}
	for {
		if len(out) == cap(out) {
			out = append(out, 0)[:len(out)]
		}
		n, err := f.r.Read(out[len(out):min(cap(out), protocol.MaxRequestBytes+1)])
		out = out[:len(out)+n]
		switch {
		case len(out) > protocol.MaxRequestBytes:
			return out, errTooBig
		case err == io.EOF:
			return out, nil
		case err != nil:
			return out, err
		}
	}
}
