package journal

import (
	"context"
	"time"
)

// readMost is how many records are read at a time.
const readMost = 256

// reading is one log within a page.
type reading struct {
	store Store
	log   Log
	room  string // that alone; "": all
	state State  // as the page began; what came since is the next page's
	at    position
	next  []Record // read, and not taken
	gap   *gap     // is told before next
}

// begin looks whether the log still is the one that the position is of, and says what is missing.
func begin(ctx context.Context, s Store, l Log, room string, at position) (*reading, error) {
	r := &reading{store: s, log: l, room: room, at: at}
	var err error
	if r.state, err = s.State(ctx, l); err != nil {
		return nil, err
	}
	switch first := max(r.state.First, 1); {
	case at.log == "":
		r.at = position{log: r.state.Name, seq: first - 1}
	case at.log != r.state.Name:
		r.miss(whyAnother, 0, first-1)
	case at.seq > r.state.Last && at.at != 0:
		err = r.goBack(ctx)
	case at.seq > r.state.Last:
		r.miss(whyLost, 0, r.state.Last)
	case at.seq+1 < first:
		r.miss(whyAged, first-1-at.seq, first-1)
	case l == Said && at.at != 0 && (at.seq < r.state.Last || at.at != nanos(r.state.Time)):
		err = r.compare(ctx)
	}
	return r, err
}

// miss goes on behind what is missing.
func (r *reading) miss(why string, missed, to uint64) {
	r.gap = &gap{Why: why, Missed: missed, Since: r.at.since()}
	r.at = position{log: r.state.Name, seq: to}
	if to == r.state.Last {
		r.at.at = nanos(r.state.Time)
	}
}

// compare finds out whether what is written behind lost its end in a crash, and gave the numbers again since.
func (r *reading) compare(ctx context.Context) error {
	got, err := r.store.Records(ctx, r.log, Query{From: r.at.seq, Most: 1})
	switch {
	case err != nil || len(got) == 0 || got[0].Seq == r.at.seq && got[0].Time.UnixNano() == r.at.at:
		return err
	case got[0].Seq != r.at.seq && r.state.Erased && got[0].Time.UnixNano() >= r.at.at: // what would tell was erased
		return nil
	case got[0].Seq != r.at.seq && !r.state.Erased: // what would tell has aged out
		r.miss(whyAged, 0, r.at.seq)
		return nil
	}
	return r.goBack(ctx)
}

// goBack goes to the first record that is younger than what was read.
func (r *reading) goBack(ctx context.Context) error {
	to, err := behind(ctx, r.store, r.log, r.state, time.Unix(0, r.at.at+1))
	if err != nil {
		return err
	}
	r.miss(whyLost, 0, to)
	got, err := r.store.Records(ctx, r.log, Query{From: to, Most: 1})
	if err == nil && len(got) > 0 && got[0].Seq == to {
		r.at.at = got[0].Time.UnixNano()
	}
	return err
}

// behind is the number before the first record of an instant or later.
func behind(ctx context.Context, s Store, l Log, state State, instant time.Time) (uint64, error) {
	got, err := s.Records(ctx, l, Query{Since: instant, Most: 1})
	if err != nil {
		return 0, err
	}
	if len(got) == 0 {
		return state.Last, nil
	}
	return got[0].Seq - 1, nil
}

// fill reads on unless something is there to be taken.
func (r *reading) fill(ctx context.Context) error {
	if len(r.next) > 0 || r.at.seq >= r.state.Last {
		return nil
	}
	got, err := r.store.Records(ctx, r.log, Query{From: r.at.seq + 1, Room: r.room, Most: readMost})
	if err != nil {
		return err
	}
	if r.next = got; len(got) == 0 { // nothing of the room
		r.at.seq, r.at.at = r.state.Last, nanos(r.state.Time)
	}
	return nil
}

// hole returns how much the log has lost between the position and the record that was read next.
func (r *reading) hole(next Record) uint64 {
	switch {
	case r.log == Acts && next.Seq > r.at.seq+1: // of each room only the newest stay
		return next.Seq - r.at.seq - 1
	case next.Number == 0 || r.at.number == 0 || next.Number <= r.at.number:
		return 0 // it does not copy, or another original than before
	case r.room == "": // what was erased has left its place empty; it counts for lost only in the original
		missing, erased := next.Number-r.at.number-1, next.Seq-r.at.seq-1
		return missing - min(missing, erased)
	case next.Before > r.at.number:
		return 1 // at least
	}
	return 0
}

// take returns what is missing before the next record, or else goes behind the record.
func (r *reading) take() (record Record, missing *gap) {
	record = r.next[0]
	if n := r.hole(record); n > 0 && r.gap == nil {
		why := whyLost
		if r.log == Acts {
			why = whyAged
		} else if r.room != "" && r.state.Erased {
			why = whyErased
		}
		r.gap = &gap{Why: why, Missed: n, Since: r.at.since()}
		r.at = position{log: r.state.Name, seq: record.Seq - 1, number: max(record.Number, 1) - 1}
	}
	if missing, r.gap = r.gap, nil; missing != nil {
		missing.Until = record.Time.UnixMilli()
		return record, missing
	}
	r.next = r.next[1:]
	number := record.Number
	if number == 0 {
		number = r.at.number
	}
	r.at = position{r.state.Name, record.Seq, record.Time.UnixNano(), number}
	return record, nil
}
