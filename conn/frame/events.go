package frame

import "liveroom/protocol"

// headerRoom is the longest header of a frame without a mask, in bytes.
const headerRoom = 10

// Events collects events for one frame, whose header goes into a place that is kept for it: a frame is made of them without
// a copy, so also under a lock. The zero value is empty.
type Events struct{ b []byte }

// Len is how many bytes of events there are, the commas between them included.
func (e *Events) Len() int { return max(len(e.b)-headerRoom-1, 0) }

// Add appends events, joined by commas.
func (e *Events) Add(events []byte) {
	if len(e.b) == 0 {
		e.b = append(make([]byte, headerRoom, headerRoom+len(events)+2), '[')
	} else {
		e.b = append(e.b, ',')
	}
	e.b = append(e.b, events...)
}

// Take returns the frame with all of them, and begins anew.
func (e *Events) Take() []byte {
	f := append(e.b, ']')
	e.b = nil
	var room [headerRoom]byte
	header := protocol.AppendFrameHeader(room[:0], len(f)-headerRoom)
	at := headerRoom - len(header)
	copy(f[at:], header)
	return f[at:]
}
