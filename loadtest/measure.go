package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// measured is a trial that is over.
type measured struct {
	trial     *trial
	figures   figures
	latencies latencies
	slots     []Slot
	counted   counters // of the trial alone, warm-up included
	took      time.Duration

	likesCounted, likesShown int64
}

// plan is what a trial should do.
type plan struct {
	phases  []phase
	warm    time.Duration
	slot    time.Duration // step of the time line
	senders int
	label   string // for the progress line

	// pick says who sends attempt k, due at an offset from the start, when its time has come; nil: -senders in turn
	pick func(due time.Duration) *session
	// meanwhile runs beside the attempts until it returns or ctx, which ends with the last attempt, does; nil: nothing
	meanwhile func(ctx context.Context, start time.Time)
}

// steady is the plan of most scenarios: -rate for -duration, after -warmup.
func (o *options) steady(label string) plan {
	return plan{phases: []phase{steady(o.warmup+o.duration, o.rate)}, warm: o.warmup, slot: time.Second, senders: o.senders, label: label}
}

// newTrial draws the attempts of a plan.
func (b *bench) newTrial(p plan) (*trial, error) {
	b.trials++
	rng := newRand(b.o.seed + uint64(b.trials)<<32)
	gaps := rng
	if !b.o.poisson {
		gaps = nil
	}
	due, err := schedule(p.phases, gaps)
	if err != nil {
		return nil, err
	}
	return newTrial(newTag(newRand(uint64(time.Now().UnixNano()))), due, b.o.mix.draw(len(due), rng), p.warm), nil
}

// measure runs a plan against viewers who are in their rooms. When ctx ends it returns what there is, and ctx's error.
func (b *bench) measure(ctx context.Context, p plan, viewers []*session) (*measured, error) {
	if len(viewers) == 0 {
		return nil, errNobody
	}
	t, err := b.newTrial(p)
	if err != nil {
		return nil, err
	}
	sp := newSpeaker(t, viewers[:min(max(p.senders, 1), len(viewers))], b.o.gift, newRand(b.o.seed+uint64(b.trials)))
	if p.pick != nil {
		t.witness()
		sp.pick = func(k int) *session { return p.pick(time.Duration(t.due[k])) }
	}
	t.start = time.Now().Add(50 * time.Millisecond)
	b.readers.begin(t)
	defer b.readers.begin(nil)
	before := b.readers.totals()
	col := newCollector(b.readers, t.start)

	spoken := make(chan error, 1)
	go func() {
		err := p.accompany(ctx, t.start, sp.run)
		limit := patience
		if err != nil {
			limit = hurry
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		sp.await(last, b.readers.motion())
		b.awaitLikes(last, viewers)
		cancel()
		spoken <- err
	}()
	err = b.watchTrial(col, p, spoken)

	m := &measured{trial: t, latencies: col.sum, slots: col.slots, counted: b.readers.totals(), took: time.Since(t.start)}
	m.counted.sub(&before)
	sp.lag.moveTo(&m.latencies)
	m.figures = sumUp(t, viewers, sp, b.readers)
	m.likesCounted, m.likesShown = b.readers.likes(viewers)
	flows(t, m.slots)
	return m, err
}

// mainTrial measures a plan whose figures are those of the run, or were until another one's are.
func (b *bench) mainTrial(ctx context.Context, p plan, viewers []*session) (*measured, error) {
	m, err := b.measure(ctx, p, viewers)
	if m != nil {
		b.result.trial(b.o, m, p.slot)
	}
	return m, err
}

// accompany runs speak, and meanwhile beside it.
func (p plan) accompany(ctx context.Context, start time.Time, speak func(context.Context) error) error {
	if p.meanwhile == nil {
		return speak(ctx)
	}
	beside, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { p.meanwhile(beside, start) })
	defer wg.Wait()
	defer stop()
	return speak(ctx)
}

// patience is how long a trial waits for the last answers and deliveries.
const patience = 30 * time.Second

// hurry is that patience when the run was told to end.
const hurry = 2 * time.Second

// motion returns a function that reports whether danmaku or gifts have arrived since its last call.
func (r *readers) motion() func() bool {
	var last int64
	return func() bool {
		now := r.totals()
		sum := now.events[kindDanmaku] + now.events[kindGift]
		moved := sum != last
		last = sum
		return moved
	}
}

// awaitLikes waits until the viewers have seen all the likes that the server counted. Likes are shown at most once a
// second, so that three are plenty; what is missing then is a finding.
func (b *bench) awaitLikes(ctx context.Context, viewers []*session) {
	if b.o.mix[like] == 0 {
		return
	}
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); {
		if counted, shown := b.readers.likes(viewers); shown == counted || waitFor(ctx, 50*time.Millisecond) != nil {
			return
		}
	}
}

// likes compares the taps that answers counted with the totals that viewers were shown, over all rooms.
func (r *readers) likes(viewers []*session) (counted, shown int64) {
	totals := map[uint16]int64{}
	for _, k := range r.sinks {
		k.mu.Lock()
		counted += k.count.likes
		for _, v := range viewers {
			if v.sink == k {
				totals[v.room] = max(totals[v.room], v.likeTotal)
			}
		}
		k.mu.Unlock()
	}
	for _, n := range totals {
		shown += n
	}
	return counted, shown
}

// watchTrial collects slots, and shows progress once a second, until the speaker has ended.
func (b *bench) watchTrial(col *collector, p plan, spoken <-chan error) error {
	tick := time.NewTicker(p.slot)
	defer tick.Stop()
	var shown time.Time
	last := 0.0
	for {
		select {
		case err := <-spoken:
			col.collect()
			return err
		case <-tick.C:
			if time.Since(col.start) < p.slot/2 {
				continue
			}
			s := col.collect()
			if time.Since(shown) >= time.Second {
				shown = time.Now()
				b.progress.line(b.trialLine(p, s, s.At-last))
			}
			last = s.At
		}
	}
}

func (b *bench) trialLine(p plan, s Slot, width float64) string {
	return fmt.Sprintf("%s %s of %s: %s deliveries/s, p50 %s, p99 %s%s", p.label,
		time.Duration(s.At*1e9).Round(time.Second), length(p.phases), formatCount(float64(s.Deliveries)/max(width, 1e-3)),
		inSeconds.format(s.P50), inSeconds.format(s.P99), b.sampler.line())
}

// sub takes d away from c.
func (c *counters) sub(d *counters) {
	from := d.fields()
	for i, n := range c.fields() {
		*n -= *from[i]
	}
}

func formatCount(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.2fM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.1fk", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}

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
