package journal

import (
	"context"
	"time"
)

// Journal reads the logs of a store.
type Journal struct{ Store Store }

// Page is a part of the journal.
type Page struct {
	Entries []Entry
	Next    Cursor // behind all that was looked at
	More    bool   // there is more by now
}

// lookedAt bounds the records that a page looks at, wanted or not, and with them its time.
const lookedAt = 16 * readMost

// aheadMost is how far clocks of different servers may be apart for the order between their logs to be kept.
const aheadMost = 2 * time.Second

// Read returns at most limit entries behind the cursor, gaps included.
func (j Journal) Read(ctx context.Context, after Cursor, f Filter, limit int) (Page, error) {
	page := Page{Next: after}
	var logs []*reading
	for _, l := range f.logs() {
		room := f.room()
		if l == Acts || l == Limits { // few, and holes are seen only between all
			room = ""
		}
		r, err := begin(ctx, j.Store, l, room, after[l])
		if err != nil {
			return page, err
		}
		logs = append(logs, r)
	}
	// What a log took later than the first of them was asked may belong behind what that took meanwhile.
	horizon := logs[0].state.Asked
	for looked := 0; ; looked++ {
		least, err := first(ctx, logs)
		if err != nil {
			return page, err
		}
		if least == nil {
			break
		}
		if ahead := least.next[0].Time.Sub(horizon); ahead > 0 && ahead < aheadMost {
			break
		}
		if page.More = looked >= lookedAt || len(page.Entries) >= limit; page.More {
			break
		}
		record, missing := least.take()
		if missing != nil {
			page.add(logs, gapEntry(least.log, *missing, record.Seq))
		} else if f.wants(record) {
			page.add(logs, Entry{ID: idOf(least.log, record.Seq, record.Time), Kind: record.Kind, Room: record.Room, Time: record.Time.UnixMilli(), Event: record.Event})
		}
	}
	page.finish(logs, limit)
	return page, nil
}

// first is the log whose next record is the oldest; nil when there is no more.
func first(ctx context.Context, logs []*reading) (least *reading, err error) {
	for _, r := range logs {
		if err := r.fill(ctx); err != nil {
			return nil, err
		}
		if len(r.next) > 0 && (least == nil || r.next[0].Time.Before(least.next[0].Time)) {
			least = r
		}
	}
	return least, nil
}

// add puts an entry behind the others, and the cursor behind it.
func (p *Page) add(logs []*reading, e Entry) {
	p.move(logs)
	e.at = p.Next
	p.Entries = append(p.Entries, e)
}

func (p *Page) move(logs []*reading) {
	for _, r := range logs {
		if r.gap == nil { // else the reader is still before it
			p.Next[r.log] = r.at
		}
	}
}

// finish tells what is missing of logs that have nothing behind it.
func (p *Page) finish(logs []*reading, limit int) {
	for _, r := range logs {
		if r.gap != nil && len(r.next) == 0 && len(p.Entries) < limit {
			missing := *r.gap
			r.gap = nil
			p.add(logs, gapEntry(r.log, missing, r.state.Last))
		}
	}
	p.move(logs)
}

// Now is the cursor behind all that is there.
func (j Journal) Now(ctx context.Context) (Cursor, error) {
	return j.each(ctx, func(_ Log, s State) (position, error) {
		return position{log: s.Name, seq: s.Last, at: nanos(s.Time)}, nil
	})
}

// Since is the cursor before all that was stored at an instant or later.
func (j Journal) Since(ctx context.Context, instant time.Time) (Cursor, error) {
	return j.each(ctx, func(l Log, s State) (position, error) {
		seq, err := behind(ctx, j.Store, l, s, instant)
		return position{log: s.Name, seq: seq}, err
	})
}

func (j Journal) each(ctx context.Context, where func(Log, State) (position, error)) (c Cursor, err error) {
	for l := range NumLogs {
		s, err := j.Store.State(ctx, l)
		if err != nil {
			return c, err
		}
		if c[l], err = where(l, s); err != nil {
			return c, err
		}
	}
	return c, nil
}

// pollEvery is how long a reader who waits may be behind.
const pollEvery = 250 * time.Millisecond

// Wait is Read that waits until there is an entry or ctx ends; then its page is empty and without an error.
func (j Journal) Wait(ctx context.Context, after Cursor, f Filter, limit int) (Page, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	page := Page{Next: after}
	for {
		got, err := j.Read(ctx, page.Next, f, limit)
		switch {
		case err != nil && ctx.Err() != nil:
			return page, nil
		case err != nil:
			return page, err
		}
		if page = got; len(page.Entries) > 0 {
			return page, nil
		}
		if page.More {
			continue
		}
		select {
		case <-ctx.Done():
			return page, nil
		case <-tick.C:
		}
	}
}
