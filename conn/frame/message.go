package frame

// Message is what has come of one message, and of a control frame that may stand between two of its fragments.
type Message struct {
	Text    []byte
	Control []byte // the payload of a control frame

	spare    []byte // the other buffer of two, for a message that comes deflated
	deflated bool
}

// firstBytes is the buffer to begin with. It grows only as input comes, so that a half message costs the server about as
// much as it cost the client.
const firstBytes = 1 << 10

// NewMessage returns an empty one with a buffer of 1 KiB.
func NewMessage() Message { return Message{Text: make([]byte, 0, firstBytes)} }

// Overgrown is the size of the buffer in bytes, when it is more than a message begins with, else 0.
func (m *Message) Overgrown() int {
	if n := cap(m.Text); n > firstBytes {
		return n
	}
	return 0
}

// Reset empties the message for the next one. False: its buffers are too large to be kept.
func (m *Message) Reset() bool {
	if cap(m.Text) > 4*firstBytes || cap(m.spare) > 4*firstBytes {
		return false
	}
	m.Text, m.Control, m.deflated = m.Text[:0], m.Control[:0], false
	return true
}
