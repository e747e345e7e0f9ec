package journal

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Cursor is where a reader is: a position in each log. Its zero value is before all that is kept. To whoever keeps one it is a word of
// A-Z a-z 0-9 . _ - without a meaning.
type Cursor [NumLogs]position

// position is behind an entry of a log. Its zero value is before all that is kept.
type position struct {
	log    string // the log's name
	seq    uint64
	at     int64  // when the log took the entry, Unix nanoseconds; 0: not known
	number uint64 // of the entry in the original of a log that copies, or of one before it; 0: not known
}

// format begins every cursor.
const format = "1"

// ErrCursor says that something is no cursor.
var ErrCursor = errors.New("no cursor of this server")

// String is what [ParseCursor] reads.
func (c Cursor) String() string {
	var b strings.Builder
	b.WriteString(format)
	for l := range NumLogs {
		if p := c[l]; p.log != "" {
			fmt.Fprintf(&b, ".%c%s_%s_%s_%s", l.letter(), strconv.FormatUint(p.seq, 36), strconv.FormatInt(p.at, 36), strconv.FormatUint(p.number, 36), p.log)
		}
	}
	return b.String()
}

// maxCursor bounds what is parsed.
const maxCursor = 512

// ParseCursor reads what [Cursor.String] wrote, by this version of the server or an earlier one.
func ParseCursor(s string) (c Cursor, err error) {
	parts := strings.Split(s, ".")
	if len(s) > maxCursor || parts[0] != format {
		return c, ErrCursor
	}
	for _, part := range parts[1:] {
		fields := strings.SplitN(part, "_", 4)
		if len(fields) != 4 || fields[0] == "" || fields[3] == "" {
			return c, ErrCursor
		}
		seq, err1 := strconv.ParseUint(fields[0][1:], 36, 64)
		at, err2 := strconv.ParseInt(fields[1], 36, 64)
		number, err3 := strconv.ParseUint(fields[2], 36, 64)
		if errors.Join(err1, err2, err3) != nil {
			return c, ErrCursor
		}
		for l := range NumLogs { // one that this version does not know is of a later one, which was taken back
			if l.letter() == fields[0][0] {
				c[l] = position{fields[3], seq, at, number}
			}
		}
	}
	return c, nil
}

func (p position) since() int64 {
	if p.at == 0 {
		return 0
	}
	return time.Unix(0, p.at).UnixMilli()
}

// nanos is an instant in a position.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
