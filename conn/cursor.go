package conn

// cursor follows the frames in what a client sends (RFC 6455, section 5.2). It tells the read loop when it is between two
// messages, which is where a session may rest without a goroutine, and when the client's close frame has come. With
// permessage-deflate it also marks deflated messages, see [rewrite]. Owned by the read loop.
type cursor struct {
	left   uint64 // of the payload; while the header is read, its length as far as it is known
	part   uint8  // which part of a frame comes next
	wanted uint8  // bytes of that part still to come
	first  byte   // of the frame's header
	masked bool
	open   bool // a message has begun and its last frame has not come
	closed bool // a close frame has come

	deflate bool // permessage-deflate was negotiated
	notText bool // a binary message comes next, which ends the reading
}

// Parts of a frame.
const (
	partFirst   uint8 = iota // FIN, RSV, opcode
	partSecond               // mask bit, short length
	partLength               // long length
	partMask                 //
	partPayload              //
)

// between reports whether what comes next is the head of a message, or of a control frame between two messages.
func (c *cursor) between() bool { return c.part == partFirst && !c.open }

// pass follows p, the next bytes of the stream, and returns how many of them may be passed on.
func (c *cursor) pass(p []byte) (int, error) {
	for i := 0; i < len(p); {
		if c.part == partPayload {
			n := min(c.left, uint64(len(p)-i))
			c.left -= n
			i += int(n)
			c.endIfWhole()
			continue
		}
		if c.part == partFirst && c.deflate {
			if err := rewrite(&p[i]); err != nil {
				c.notText = true
				return i, err
			}
		}
		c.header(p[i])
		i++
	}
	return len(p), nil
}

// header takes one byte of a header.
func (c *cursor) header(b byte) {
	switch c.part {
	case partFirst:
		c.first, c.part = b, partSecond
		return
	case partSecond:
		c.masked = b&0x80 != 0
		c.left, c.wanted, c.part = uint64(b&0x7f), 0, partLength
		switch c.left {
		case 126:
			c.left, c.wanted = 0, 2
		case 127:
			c.left, c.wanted = 0, 8
		}
	case partLength:
		c.left = c.left<<8 | uint64(b)
		c.wanted--
	case partMask:
		c.wanted--
	}
	if c.part == partLength && c.wanted == 0 {
		c.part = partMask
		if c.masked {
			c.wanted = 4
		}
	}
	if c.part == partMask && c.wanted == 0 {
		c.part = partPayload
		c.endIfWhole()
	}
}

// endIfWhole ends the frame when its payload has passed.
func (c *cursor) endIfWhole() {
	const fin, opcodes, opControl, opClose = 0x80, 0x0f, 0x8, 0x8
	if c.left > 0 {
		return
	}
	c.part = partFirst
	switch op := c.first & opcodes; {
	case op == opClose:
		c.closed = true
	case op < opControl:
		c.open = c.first&fin == 0
	}
}
