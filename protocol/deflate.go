package protocol

import (
	"sync"

	"github.com/klauspost/compress/flate"
)

// What makes deflating a frame worth it. One danmaku shrinks by less than a tenth, which costs both ends more than the
// bytes are worth; two shrink by a third. See docs/performance.md.
const (
	minDeflateBytes = 200 // payload
	minDeflateGain  = 8   // the deflated payload is smaller by one part in so many, or the frame stays as it is
)

// deflateLevel is klauspost's highest level without lazy matching: next to the levels below it a per cent fewer bytes at
// the same time, next to those above half the time for half a per cent more bytes; next to compress/flate at its own level
// 6 a quarter of the time for two per cent more.
const deflateLevel = 6

// deflater is a compressor with its output. It weighs a megabyte, so there are as many as frames are made at a time.
type deflater struct {
	w   *flate.Writer
	out []byte
}

var deflaters = sync.Pool{New: func() any {
	d := new(deflater)
	d.w, _ = flate.NewWriter(d, deflateLevel) // fails on an unknown level only
	return d
}}

// Write takes the compressor's output.
func (d *deflater) Write(p []byte) (int, error) {
	d.out = append(d.out, p...)
	return len(p), nil
}

// DeflateTail is what ends a flushed DEFLATE block; permessage-deflate leaves it out of each message (RFC 7692, section
// 7.2.1).
const DeflateTail = "\x00\x00\xff\xff"

// Deflate returns f as a client takes it that has negotiated permessage-deflate with server_no_context_takeover and the
// whole window of 15 bits (RFC 7692): RSV1 set, the payload deflated by itself, so that the same bytes serve everybody. It
// returns f itself where deflating does not pay.
func Deflate(f *Frame) *Frame {
	payload := f.Payload()
	if len(payload) < minDeflateBytes {
		return f
	}
	d := deflaters.Get().(*deflater)
	defer deflaters.Put(d)
	d.out = d.out[:0]
	d.w.Reset(d)
	// Neither fails, since Write never does.
	_, _ = d.w.Write(payload)
	_ = d.w.Flush()
	small := d.out[:len(d.out)-len(DeflateTail)]
	if len(small) > len(payload)-len(payload)/minDeflateGain {
		return f
	}
	b := appendHeader(make([]byte, 0, maxHeader+len(small)), len(small))
	b[0] |= rsv1
	h := len(b)
	return &Frame{bytes: append(b, small...), header: h}
}

// rsv1 marks the first frame of a deflated message (RFC 7692, section 6).
const rsv1 = 0x40
