package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"liveroom/internal/hook"
	"liveroom/internal/journal"
)

// EventsType is what a call with events is of.
const EventsType = "events"

// Bounds of one call.
const (
	mostEntries = 200
	mostBytes   = 128 << 10
)

// Batch is what a call brings.
type Batch struct {
	Webhook string          `json:"webhook"`
	Again   bool            `json:"again,omitempty"` // a dead letter that somebody had sent again, out of its turn
	Events  []journal.Entry `json:"events"`
}

// Receipt is the answer to a [Batch].
type Receipt struct {
	OK bool `json:"ok"`
	// Refused are entries that the platform has no use for, now and later. The others are taken.
	Refused []Refused `json:"refused"`
}

// Refused is an entry that is not taken.
type Refused struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

// Check implements [hook.Answer].
func (r *Receipt) Check() error { return (&hook.Done{OK: r.OK}).Check() }

const (
	// firstRest is the pause after the first failure; it doubles.
	firstRest = time.Second
	// triesMost is how often one entry is tried alone before it may be given up.
	triesMost = 8
	// lettersInARow may be put aside at once; beyond them the line rests before each, for it may be the platform that is wrong.
	lettersInARow = 100
)

// line is how it goes with delivering.
type line struct {
	size    int           // entries in the next call
	rest    time.Duration // after the next failure
	letters int           // put aside in a row
	head    string        // the entry that was tried alone last
	tries   int           // of head
	first   time.Time     // when it was
}

// failure says what to do about a call that was not answered with a receipt.
type failure int

const (
	waits   failure = iota // the platform can't take anything now
	fails                  // it can't take this, as it seems
	refuses                // it will never take this
)

func failureOf(err error) failure {
	var f *hook.Failure
	if !errors.As(err, &f) {
		return waits
	}
	switch f.Outcome {
	case hook.Rubbish, hook.TooLarge, hook.TimedOut:
		return fails
	case hook.BadStatus:
		switch f.Status {
		case 400, 413, 422:
			return refuses
		case 502, 503, 504:
		default:
			if f.Status >= 500 {
				return fails
			}
		}
	}
	return waits
}

// work delivers until this node must not any more, or ctx ends.
func (c *Courier) work(ctx context.Context) {
	for ctx.Err() == nil {
		c.moved = false
		if c.mine.Paused {
			woken := time.Now().Add(c.cfg.BeatEvery)
			if !c.rest(ctx, func() bool { return time.Now().After(woken) }) {
				return
			}
			continue
		}
		within, done := context.WithTimeout(ctx, c.cfg.BeatEvery)
		page, err := c.cfg.Consumers.Wait(within, c.mine.At, c.mine.Filter(), mostEntries)
		done()
		if err != nil {
			woken := time.Now().Add(c.cfg.BeatEvery)
			if !c.rest(ctx, func() bool { return time.Now().After(woken) }) {
				return
			}
			continue
		}
		if !c.deliver(ctx, page.Entries) {
			return
		}
		if !c.moved && len(page.Entries) == 0 || !c.moved && c.mine.At == page.Entries[len(page.Entries)-1].Cursor() {
			c.mine.At = page.Next
		}
		if !c.beat(ctx) {
			return
		}
	}
}

// deliver has the platform take entries, one call after the other; false when this node must not any more. It stops when somebody has
// moved or paused the consumer.
func (c *Courier) deliver(ctx context.Context, entries []journal.Entry) bool {
	for len(entries) > 0 && !c.moved && !c.mine.Paused {
		batch := c.line.cut(entries)
		var receipt Receipt
		var err error
		if !c.during(ctx, func(ctx context.Context) { err = call(ctx, c.cfg.Platform, c.cfg.Name, batch, false, &receipt) }) {
			return false
		}
		taken, refused := 0, map[string]string{}
		switch what := failureOf(err); {
		case err == nil:
			taken = len(batch)
			for _, r := range receipt.Refused {
				refused[r.ID] = clip(r.Why)
			}
		case what != waits && len(batch) > 1: // which of them it is shows one by one
			c.line.size = 1
			if what == refuses {
				continue
			}
		case what == refuses && (c.line.letters < lettersInARow || c.line.again(batch[0].ID) > 1):
			taken, refused[batch[0].ID] = 1, err.Error()
		case what == fails && c.line.again(batch[0].ID) >= triesMost && time.Since(c.line.first) >= c.cfg.GiveUpAfter:
			taken, refused[batch[0].ID] = 1, "given up: "+err.Error()
		}
		if taken == 0 {
			if !c.wait(ctx) {
				return false
			}
			continue
		}
		if !c.putAside(ctx, batch[:taken], refused) {
			return false
		}
		c.line.took(taken, len(refused))
		c.cfg.Consumers.Metrics.Told(batch[:taken])
		c.cfg.Metrics.delivered(c.cfg.Name, taken-len(refused))
		if c.moved {
			return true
		}
		c.mine.At = batch[taken-1].Cursor()
		entries = entries[taken:]
		if !c.save(ctx) {
			return false
		}
	}
	return true
}

// cut returns what the next call brings.
func (l *line) cut(entries []journal.Entry) []journal.Entry {
	const around = 150 // of an entry
	n, size := 0, 0
	for n < len(entries) && n < max(l.size, 1) {
		if size += len(entries[n].Event) + around; n > 0 && size > mostBytes {
			break
		}
		n++
	}
	return entries[:n]
}

// again counts a try of one entry alone.
func (l *line) again(id string) int {
	if l.head != id {
		l.head, l.tries, l.first = id, 0, time.Now()
	}
	l.tries++
	return l.tries
}

func (l *line) took(n, refused int) {
	l.size, l.head = min(2*max(l.size, 1), mostEntries), ""
	if l.letters += refused; refused < n {
		l.letters, l.rest = 0, 0
	}
}

// wait rests after a failure: while the platform is away until it answers a ping, else for longer and longer.
func (c *Courier) wait(ctx context.Context) bool {
	if c.cfg.Platform.Err() != nil {
		return c.rest(ctx, func() bool { return c.cfg.Platform.Err() == nil || c.mine.Paused })
	}
	c.line.rest = min(max(2*c.line.rest, firstRest), c.cfg.LongestRest)
	woken := time.Now().Add(c.line.rest/2 + rand.N(c.line.rest/2))
	return c.rest(ctx, func() bool { return time.Now().After(woken) || c.mine.Paused })
}

// putAside keeps the entries that are refused; false when this node must not deliver any more. What can't be kept is not passed over.
func (c *Courier) putAside(ctx context.Context, entries []journal.Entry, refused map[string]string) bool {
	for _, e := range entries {
		why, is := refused[e.ID]
		if !is {
			continue
		}
		raw, err := json.Marshal(Letter{Why: why, Tries: max(c.line.tries, 1), At: time.Now().UnixMilli(), Entry: e})
		for err == nil {
			if err = c.cfg.Letters.PutLetter(ctx, c.cfg.Name, e.ID, raw); err == nil {
				break
			}
			c.cfg.Log.Error("a webhook's dead letter can't be kept, and the line waits", "webhook", c.cfg.Name, "err", err)
			if !c.wait(ctx) {
				return false
			}
			err = nil
		}
		c.cfg.Log.Warn("a webhook's event is a dead letter", "webhook", c.cfg.Name, "id", e.ID, "kind", string(e.Kind), "room", e.Room, "why", why)
		c.cfg.Metrics.dead(c.cfg.Name)
	}
	return true
}

// call brings entries to a platform.
func call(ctx context.Context, to hook.Asker, name string, entries []journal.Entry, again bool, receipt *Receipt) error {
	id := fmt.Sprintf("%s_%s_%d", name, entries[0].ID, len(entries))
	return to.Call(ctx, hook.Call{ID: id, Type: EventsType, Data: Batch{name, again, entries}, Repeat: true}, receipt)
}

// clip keeps what a platform gives as a reason short.
func clip(s string) string { return s[:min(len(s), 200)] }
