package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"liveroom/loadtest/internal/client"
	"liveroom/loadtest/internal/report"
)

// frames asks what a frame costs: the processor time of the whole server, by frame that a viewer read, in turns with that
// of a process that only writes the same bytes to as many sockets.
func frames(ctx context.Context, b *bench) error {
	o := b.o
	if err := b.oneNode(); err != nil {
		return err
	}
	return b.audience(ctx, func(c *client.Crowd) error {
		return b.withBare(ctx, len(c.Live()), func(loop *bare) (err error) {
			f := &frameTurns{bench: b, crowd: c, loop: loop, text: textOf(o.size), each: eachBurst(o.size), speak: client.NewWriter(client.NewRand(o.seed))}
			if f.idle, err = b.idle(ctx); err != nil {
				return err
			}
			return b.around(ctx, func() error {
				for i := range o.rounds + 1 {
					b.progress.line(fmt.Sprintf("frames: round %d of %d, %d viewers", i, o.rounds, o.viewers))
					round, err := f.round(ctx)
					if err != nil {
						return err
					}
					if i > 0 { // the first warms up
						b.result.Frames = append(b.result.Frames, round)
					}
				}
				b.result.Medians(b.result.Frames)
				return nil
			})
		})
	})
}

// frameTurns takes turns.
type frameTurns struct {
	*bench
	crowd *client.Crowd
	loop  *bare
	text  string // of a message
	each  int    // messages at a time: what does not fit into one
	speak *client.Writer
	said  int
	idle  float64 // of one core: what the same sessions cost while nobody speaks, heartbeats above all
}

// idle is the share of one core that the server needs while all are silent.
func (b *bench) idle(ctx context.Context) (float64, error) {
	b.progress.line("frames: nobody speaks")
	start := time.Now()
	spent, err := b.timed(func() error { return client.WaitFor(ctx, 2*b.o.duration) })
	share := spent / time.Since(start).Seconds()
	b.result.Values["idle_cpu"] = share
	return share, err
}

// frameHeader4 is the header of a frame of 126 bytes to 64 KiB from a server (RFC 6455, section 5.2).
const frameHeader4 = 4

// maxText is how long a message's text may be in bytes; the marker comes behind it.
const maxText = 1000

// textOf is a text that makes a frame of about size bytes, or the longest one. Families of emoji are long but few.
func textOf(size int) string {
	const around = 130 // bytes of a frame beside the text
	const family = "👨‍👩‍👧"
	n := min(max(size-around, 1), maxText)
	return strings.Repeat(family, n/len(family)) + strings.Repeat("x", n%len(family))
}

// eachBurst is how many messages make frames of about size bytes on average: the first after a quiet tick leaves alone,
// the others follow as one frame.
func eachBurst(size int) int {
	const longest = maxText + 130
	if size <= longest {
		return 1
	}
	return (2*size + longest - 1) / longest
}

// round is a turn of the server and then one of the bare loop with as many frames of the same size.
func (f *frameTurns) round(ctx context.Context) (r report.FrameRound, err error) {
	before, start := f.readers.Totals(), time.Now()
	bursts := max(1, int(f.o.duration.Seconds()*f.o.rate/float64(f.o.viewers)/float64(f.each)))
	spent, err := f.timed(func() error { return f.say(ctx, bursts, f.o.duration/time.Duration(bursts)) })
	if err != nil {
		return r, err
	}
	now, sockets := f.readers.Totals(), len(f.crowd.Live())
	written := float64(now.Frames - before.Frames)
	r.Bytes = float64(now.Bytes-before.Bytes)/written + frameHeader4
	r.Server = (spent - f.idle*time.Since(start).Seconds()) / written
	passes := max(1, int(math.Round(written/float64(f.o.viewers))))
	bare, err := f.loop.timed(Passes{passes, f.o.duration / time.Duration(passes), int(math.Round(r.Bytes)), sockets})
	r.Bare = bare / float64(passes*sockets)
	r.Ratio = r.Server / r.Bare
	return r, err
}

// say sends bursts of messages and waits until everything has arrived. Nothing of it is a trial: only frames count.
func (f *frameTurns) say(ctx context.Context, bursts int, every time.Duration) error {
	senders, tag, start := f.crowd.Live(), client.NewTag(f.speak.Rng), time.Now()
	before := f.readers.Totals().Danmaku
	for i := range bursts {
		if err := client.WaitUntil(ctx, start.Add(time.Duration(i)*every)); err != nil {
			return err
		}
		for range f.each {
			s := senders[f.said%len(senders)]
			f.said++
			if err := s.Wire.Write(f.speak.Danmaku(tag, f.said, f.text)); err != nil {
				return err
			}
		}
	}
	return f.awaitAll(ctx, before+int64(bursts*f.each*len(senders)))
}

// awaitAll waits until all viewers together have read so many danmaku.
func (f *frameTurns) awaitAll(ctx context.Context, owed int64) error {
	moved, since := f.readers.Motion(), time.Now()
	for f.readers.Totals().Danmaku < owed {
		if moved() {
			since = time.Now()
		}
		if time.Since(since) > client.ConnectTimeout {
			return fmt.Errorf("%d deliveries did not come", owed-f.readers.Totals().Danmaku)
		}
		if err := client.WaitFor(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
