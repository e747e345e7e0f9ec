package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"liveroom/loadtest/internal/client"
	"liveroom/loadtest/internal/report"
)

// measured is a trial that is over.
type measured struct {
	trial     *client.Trial
	classes   map[string]client.Flow
	delivery  client.Delivery
	stamps    []int64 // see [admittedStamps]
	latencies client.Latencies
	slots     []report.Slot
	counted   client.Counters // of the trial alone, warm-up included
	took      time.Duration

	likesCounted, likesShown int64
}

// plan is what a trial should do.
type plan struct {
	phases  []client.Phase
	warm    time.Duration
	slot    time.Duration // step of the time line
	senders int
	label   string // for the progress line

	// pick says who sends attempt k, due at an offset from the start, when its time has come; nil: -senders in turn
	pick func(due time.Duration) *client.Session
	// meanwhile runs beside the attempts until it returns or ctx, which ends with the last attempt, does; nil: nothing
	meanwhile func(ctx context.Context, start time.Time)
}

// steady is the plan of most scenarios: -rate for -duration, after -warmup.
func (o *options) steady(label string) plan {
	return plan{phases: []client.Phase{client.Steady(o.warmup+o.duration, o.rate)}, warm: o.warmup, slot: time.Second, senders: o.senders, label: label}
}

// newTrial draws the attempts of a plan.
func (b *bench) newTrial(p plan) (*client.Trial, error) {
	b.trials++
	rng := client.NewRand(b.o.seed + uint64(b.trials)<<32)
	gaps := rng
	if !b.o.poisson {
		gaps = nil
	}
	due, err := client.Schedule(p.phases, gaps)
	if err != nil {
		return nil, err
	}
	return client.NewTrial(client.NewTag(client.NewRand(uint64(time.Now().UnixNano()))), due, b.o.mix.Draw(len(due), rng), p.warm), nil
}

// measure runs a plan against viewers who are in their rooms. When ctx ends it returns what there is, and ctx's error.
func (b *bench) measure(ctx context.Context, p plan, viewers []*client.Session) (*measured, error) {
	if len(viewers) == 0 {
		return nil, errNobody
	}
	t, err := b.newTrial(p)
	if err != nil {
		return nil, err
	}
	pick := client.InTurns(viewers[:min(max(p.senders, 1), len(viewers))])
	if p.pick != nil {
		pick = func(k int) *client.Session { return p.pick(time.Duration(t.Due[k])) }
		t.Heard = make([]atomic.Int64, len(t.Due))
	}
	sp := client.NewSpeaker(t, pick, b.o.gift, client.NewRand(b.o.seed+uint64(b.trials)))
	t.Start = time.Now().Add(50 * time.Millisecond)
	b.readers.Begin(t)
	defer b.readers.Begin(nil)
	before := b.readers.Totals()
	col := newCollector(b.readers, t.Start)

	spoken := make(chan error, 1)
	go func() {
		beside, stop := context.WithCancel(ctx)
		var others sync.WaitGroup
		if p.meanwhile != nil {
			others.Go(func() { p.meanwhile(beside, t.Start) })
		}
		err := sp.Run(ctx)
		stop()
		others.Wait()
		limit := patience
		if err != nil {
			limit = hurry
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		sp.Await(last, b.readers.Motion())
		b.awaitLikes(last, viewers)
		cancel()
		spoken <- err
	}()
	err = b.watchTrial(col, p, spoken)

	m := &measured{trial: t, latencies: col.sum, slots: col.slots, counted: b.readers.Totals(), took: time.Since(t.Start),
		classes: t.Flows(t.From, len(t.Due)), delivery: b.readers.Delivered(t, viewers), stamps: client.AdmittedStamps(t)}
	m.counted.Add(&before, -1)
	sp.Lag.MoveTo(&m.latencies)
	m.likesCounted, m.likesShown = b.readers.Likes(viewers)
	flowsBySlot(t, m.slots)
	return m, err
}

// flowsBySlot sorts the attempts into the slots they were due in.
func flowsBySlot(t *client.Trial, slots []report.Slot) {
	from := 0
	for i := range slots {
		to, _ := slices.BinarySearch(t.Due, int64(slots[i].At*1e9))
		if i == len(slots)-1 {
			to = len(t.Due)
		}
		to = max(to, from)
		slots[i].Classes = t.Flows(from, to)
		from = to
	}
}

// mainTrial measures a plan whose figures are those of the run, or were until another one's are.
func (b *bench) mainTrial(ctx context.Context, p plan, viewers []*client.Session) (*measured, error) {
	m, err := b.measure(ctx, p, viewers)
	if m != nil {
		b.record(m, p.slot)
	}
	return m, err
}

// patience is how long a trial waits for the last answers and deliveries.
const patience = 30 * time.Second

// hurry is that patience when the run was told to end.
const hurry = 2 * time.Second

// awaitLikes waits until the viewers have seen all the likes that the server counted. Likes are shown at most once a
// second, so that three are plenty; what is missing then is a finding.
func (b *bench) awaitLikes(ctx context.Context, viewers []*client.Session) {
	if b.o.mix[client.Like] == 0 {
		return
	}
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); {
		if counted, shown := b.readers.Likes(viewers); shown == counted || client.WaitFor(ctx, 50*time.Millisecond) != nil {
			return
		}
	}
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

func (b *bench) trialLine(p plan, s report.Slot, width float64) string {
	return fmt.Sprintf("%s %s of %s: %s deliveries/s, p50 %s, p99 %s%s", p.label,
		time.Duration(s.At*1e9).Round(time.Second), client.Length(p.phases), report.FormatCount(float64(s.Deliveries)/max(width, 1e-3)),
		report.InSeconds.Format(s.P50), report.InSeconds.Format(s.P99), b.sampler.line())
}

// collector empties the sinks at regular instants. Not safe for concurrent use.
type collector struct {
	readers *client.Readers
	start   time.Time
	sum     client.Latencies // of the whole trial
	last    client.Counters
	slots   []report.Slot
}

func newCollector(r *client.Readers, start time.Time) *collector {
	c := &collector{readers: r, start: start, last: r.Totals()}
	var before client.Latencies
	r.Drain(&before)
	before[client.Join] = nil
	return c
}

// collect closes a slot.
func (c *collector) collect() report.Slot {
	var lat client.Latencies
	c.readers.Drain(&lat)
	now, at := c.readers.Totals(), time.Since(c.start)
	s := report.Slot{At: at.Seconds(), Deliveries: now.Deliveries() - c.last.Deliveries(), Frames: now.Frames - c.last.Frames,
		Bytes: now.Bytes - c.last.Bytes, Missed: now.Missed - c.last.Missed,
		P50: lat.Quantile(client.ToReceipt, 50).Seconds(), P99: lat.Quantile(client.ToReceipt, 99).Seconds(), Max: lat.Quantile(client.ToReceipt, 100).Seconds(),
		GiftP99: lat.Quantile(client.GiftReceipt, 99).Seconds()}
	c.last = now
	lat.MoveTo(&c.sum)
	c.slots = append(c.slots, s)
	return s
}
