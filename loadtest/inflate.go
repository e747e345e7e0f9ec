package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/flate"

	"liveroom/protocol"
)

// deflateOffer is what Chromium offers (RFC 7692).
const deflateOffer = "permessage-deflate; client_max_window_bits"

// checkDeflate looks whether the server agreed to the offer, in a way that lets all viewers share what one of them inflates.
func checkDeflate(resp *http.Response) error {
	answer := resp.Header.Get("Sec-WebSocket-Extensions")
	for _, want := range []string{"permessage-deflate", "server_no_context_takeover"} {
		if !strings.Contains(answer, want) {
			return fmt.Errorf("the server did not agree to %s: it answered %q", want, answer)
		}
	}
	return nil
}

// opDeflated marks the opcode of a deflated message for a [frameHandler]; it is RSV1 where the header has it.
const opDeflated = 0x40

var errDeflatedFragment = errors.New("the server deflated a message that it cut up, or a control frame")

// inflations remembers what the deflated frames that a reader met last inflate to. A room's frame is the same bytes for all
// its viewers, so that all but the first cost one comparison of memory.
type inflations struct {
	slots [digestSlots]struct{ deflated, plain []byte }
	in    bytes.Reader
	r     io.Reader
}

// inflateTail ends a message for the decompressor: what each one leaves out, and a final empty block.
const inflateTail = protocol.DeflateTail + "\x01\x00\x00\xff\xff"

// of inflates a message; what it returns is valid until the next call.
func (c *inflations) of(deflated []byte) ([]byte, error) {
	s := &c.slots[slotOf(deflated)]
	if len(s.deflated) == len(deflated)+len(inflateTail) && bytes.Equal(s.deflated[:len(deflated)], deflated) {
		return s.plain, nil
	}
	s.deflated = append(append(s.deflated[:0], deflated...), inflateTail...)
	c.in.Reset(s.deflated)
	if c.r == nil {
		c.r = flate.NewReader(&c.in)
	} else if err := c.r.(flate.Resetter).Reset(&c.in, nil); err != nil {
		return nil, err
	}
	plain := bytes.NewBuffer(s.plain[:0])
	_, err := io.Copy(plain, io.LimitReader(c.r, maxFrameBytes+1))
	s.plain = plain.Bytes()
	if err == nil && len(s.plain) > maxFrameBytes {
		err = errFrameTooBig
	}
	if err != nil {
		s.deflated = s.deflated[:0]
	}
	return s.plain, err
}

// deflated takes one deflated array of events; mu is held. Counted are the bytes that came, and beside them those that were
// saved.
func (k *sink) deflated(s *session, payload []byte) {
	plain, err := k.inflations.of(payload)
	if err != nil {
		k.count.unreadable++
		return
	}
	k.message(s, plain)
	saved := int64(len(plain) - len(payload))
	k.count.bytes -= saved
	k.count.saved += saved
}
