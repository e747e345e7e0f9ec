package preview

import (
	"math"
	"unsafe"

	"liveroom/limit"
)

// A log is a queue of chunks, the oldest first. A chunk whose traffic is past its time becomes the newest again, so that
// in steady state nothing is allocated.
const (
	chunkItems      = 512
	chunkHead       = 48
	eventChunkBytes = chunkItems*int64(unsafe.Sizeof(event{})) + chunkHead
	countChunkBytes = chunkItems*int64(unsafe.Sizeof(count{})) + chunkHead
)

type log[T any] struct {
	chunks []*chunk[T]
	most   int
}

type chunk[T any] struct {
	first, last limit.Instant // of what is in it
	base        int64         // of count.step
	n           int
	items       [chunkItems]T
}

func (l *log[T]) init(most int) { l.most = max(most, 2) }

func (l *log[T]) len64() int64 { return int64(len(l.chunks)) }

// tail returns the newest chunk if it has room.
func (l *log[T]) tail() *chunk[T] {
	if n := len(l.chunks); n > 0 && l.chunks[n-1].n < chunkItems {
		return l.chunks[n-1]
	}
	return nil
}

// extend returns an empty newest chunk, or nil when there can be none: the log is at its bound and nothing in it is
// older than past.
func (l *log[T]) extend(past limit.Instant) *chunk[T] {
	if len(l.chunks) > 0 && l.chunks[0].last < past {
		return l.recycle()
	}
	if len(l.chunks) >= l.most {
		return nil
	}
	c := &chunk[T]{}
	c.clear()
	l.chunks = append(l.chunks, c)
	return c
}

// recycle gives up the oldest chunk and returns it as the newest.
func (l *log[T]) recycle() *chunk[T] {
	c := l.chunks[0]
	copy(l.chunks, l.chunks[1:])
	l.chunks[len(l.chunks)-1] = c
	c.clear()
	return c
}

func (c *chunk[T]) clear() { c.n, c.first, c.last = 0, math.MaxInt64, math.MinInt64 }

func (c *chunk[T]) add(at limit.Instant, v T) {
	c.items[c.n] = v
	c.n++
	c.first, c.last = min(c.first, at), max(c.last, at)
}

// filter keeps what keep says, in order, and returns how many went. Chunks left empty are given back to the runtime.
func (l *log[T]) filter(time func(*chunk[T], T) limit.Instant, keep func(T) bool) int64 {
	gone := int64(0)
	into := l.chunks[:0]
	var open *chunk[T]
	for _, c := range l.chunks {
		n := c.n
		c.clear()
		for _, v := range c.items[:n] {
			if !keep(v) {
				gone++
				continue
			}
			if open == nil || open.n == chunkItems {
				// What is written lies never ahead of what is read.
				open = l.chunks[len(into)]
				open.clear()
				into = append(into, open)
			}
			open.add(time(c, v), v)
		}
	}
	clear(l.chunks[len(into):])
	l.chunks = into
	return gone
}

// tidy returns how many chunks hold something that is not older than past. It gives the others back to the runtime when
// they are more than half of all; fewer will be needed again soon.
func (l *log[T]) tidy(past limit.Instant) int {
	old := 0
	for old < len(l.chunks) && l.chunks[old].last < past {
		old++
	}
	live := len(l.chunks) - old
	if old > live+1 {
		copy(l.chunks, l.chunks[old:])
		clear(l.chunks[live:])
		l.chunks = l.chunks[:live]
	}
	return live
}
