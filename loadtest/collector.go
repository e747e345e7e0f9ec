package main

import "time"

// Slot is one step of a trial's time line.
type Slot struct {
	At         float64         `json:"at_seconds"` // its end, since the trial's start
	Deliveries int64           `json:"deliveries"` // danmaku, gifts and likes read by all viewers
	Frames     int64           `json:"frames"`
	Bytes      int64           `json:"bytes"`
	Missed     int64           `json:"missed"`
	P50        float64         `json:"p50_seconds"`
	P99        float64         `json:"p99_seconds"`
	Max        float64         `json:"max_seconds"`
	GiftP99    float64         `json:"gift_p99_seconds"`
	Classes    map[string]Flow `json:"classes,omitempty"`
}

// Flow is what became of a class's attempts that were due in one slot.
type Flow struct {
	Attempts int64 `json:"attempts"`
	Admitted int64 `json:"admitted"`
	Degraded int64 `json:"degraded"`
	Refused  int64 `json:"refused"`
}

// collector empties the sinks at regular instants. Not safe for concurrent use.
type collector struct {
	readers *readers
	start   time.Time
	sum     latencies // of the whole trial
	last    counters
	slots   []Slot
}

func newCollector(r *readers, start time.Time) *collector {
	c := &collector{readers: r, start: start, last: r.totals()}
	var before latencies
	r.drain(&before)
	before[join] = nil
	return c
}

// collect closes a slot.
func (c *collector) collect() Slot {
	var lat latencies
	c.readers.drain(&lat)
	now, at := c.readers.totals(), time.Since(c.start)
	s := Slot{At: at.Seconds(), Deliveries: now.deliveries() - c.last.deliveries(), Frames: now.frames - c.last.frames,
		Bytes: now.bytes - c.last.bytes, Missed: now.missed - c.last.missed,
		P50: lat.quantile(toReceipt, 50).Seconds(), P99: lat.quantile(toReceipt, 99).Seconds(), Max: lat.quantile(toReceipt, 100).Seconds(),
		GiftP99: lat.quantile(giftReceipt, 99).Seconds()}
	c.last = now
	lat.moveTo(&c.sum)
	c.slots = append(c.slots, s)
	return s
}

// deliveries counts the events for everybody that viewers have read.
func (c *counters) deliveries() int64 {
	return c.events[kindDanmaku] + c.events[kindGift] + c.events[kindLike]
}

// totals sums what all sinks have counted.
func (r *readers) totals() counters {
	var sum counters
	for _, k := range r.sinks {
		k.mu.Lock()
		sum.add(&k.count)
		k.mu.Unlock()
	}
	return sum
}

// drain moves what all sinks have measured into sum.
func (r *readers) drain(sum *latencies) {
	for _, k := range r.sinks {
		k.mu.Lock()
		if k.trial != nil {
			k.resolve()
		}
		k.lat.moveTo(sum)
		k.mu.Unlock()
	}
}

// tables sums close codes and reasons over all sinks.
func (r *readers) tables() (closes, reasons map[string]int64) {
	closes, reasons = map[string]int64{}, map[string]int64{}
	for _, k := range r.sinks {
		k.mu.Lock()
		for code, n := range k.closes {
			closes[code] += n
		}
		for reason, n := range k.reasons {
			reasons[reason] += n
		}
		k.mu.Unlock()
	}
	return closes, reasons
}

// delivered sums, by attempt, to how many stable sessions the trial's danmaku came. Valid until the next trial begins.
func (r *readers) delivered(n int) []uint32 {
	out := make([]uint32, n)
	for _, k := range r.sinks {
		k.mu.Lock()
		for i, d := range k.delivered {
			out[i] += d
		}
		k.mu.Unlock()
	}
	return out
}
