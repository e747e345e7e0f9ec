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

// deflateLevel is klauspost's highest level without lazy matching. A tick of 8 danmaku (1.1 KB), found with cold caches as
// it is between two loops over the viewers, takes it 39 µs to 0.412 of the bytes; level 1 takes 29 µs to 0.428, level 7
// 60 µs to 0.410, and compress/flate 61 µs to 0.423 at its level 1, 86 µs to 0.412 at 6. See docs/performance.md.
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
	b := AppendFrameHeader(make([]byte, 0, maxHeader+len(small)), len(small))
	b[0] |= rsv1
	h := len(b)
	return &Frame{bytes: append(b, small...), header: h}
}

// rsv1 marks the first frame of a deflated message (RFC 7692, section 6).
const rsv1 = 0x40
