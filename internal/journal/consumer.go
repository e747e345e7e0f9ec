package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Consumer is a reader that has a name, and whose place is kept for it.
type Consumer struct {
	Name   string
	Rooms  []string // none: all, and what is of no room
	Kinds  []Kind   // none: all
	At     Cursor   // it has acknowledged all before it
	Paused bool     // it is given nothing
	// Holder is the node that reads for it; "": whoever comes. A consumer that nodes read for is not anybody else's to acknowledge.
	Holder string
	Owned  bool  // nodes read for it
	Made   int64 // Unix ms
	Moved  int64 // Unix ms of the last acknowledgement or replay

	Revision uint64 // of what is kept
}

// Filter is what it reads.
func (c Consumer) Filter() Filter { return Filter{c.Rooms, c.Kinds} }

// consumerRecord is a consumer as it is kept.
type consumerRecord struct {
	At     string   `json:"at"`
	Rooms  []string `json:"rooms,omitempty"`
	Kinds  []Kind   `json:"kinds,omitempty"`
	Paused bool     `json:"paused,omitempty"`
	Holder string   `json:"holder,omitempty"`
	Owned  bool     `json:"owned,omitempty"`
	Made   int64    `json:"made"`
	Moved  int64    `json:"moved"`
}

// MaxConsumers bounds them.
const MaxConsumers = 100

// What can go wrong with a consumer.
var (
	ErrNoConsumer = errors.New("no such consumer")
	ErrMoved      = errors.New("the consumer was changed meanwhile")
	ErrTooMany    = fmt.Errorf("there are %d consumers, which is all there may be", MaxConsumers)
)

// Kept is a consumer's record.
type Kept struct {
	Name     string
	Value    []byte
	Revision uint64 // 0: there is none
}

// Keeper keeps consumers' records, over nodes.
type Keeper interface {
	// Kept returns the newest record of a name, of revision 0 when there is none.
	Kept(ctx context.Context, name string) (Kept, error)
	// Keep stores a record where Revision is that of the newest one, and returns the new one; else ErrMoved.
	Keep(ctx context.Context, k Kept) (revision uint64, err error)
	// Forget takes a record away where Revision is that of the newest one; else ErrMoved.
	Forget(ctx context.Context, k Kept) error
	// AllKept returns the newest records.
	AllKept(ctx context.Context) ([]Kept, error)
}

// Consumers are all readers with names. Its methods may be called from any goroutine, on any node.
type Consumers struct {
	Journal
	Keeper  Keeper
	Metrics *Metrics
}

func consumerOf(k Kept) (c Consumer, err error) {
	var r consumerRecord
	if err = json.Unmarshal(k.Value, &r); err == nil {
		c = Consumer{Name: k.Name, Rooms: r.Rooms, Kinds: r.Kinds, Paused: r.Paused, Holder: r.Holder, Owned: r.Owned, Made: r.Made, Moved: r.Moved, Revision: k.Revision}
		c.At, err = ParseCursor(r.At)
	}
	if err != nil {
		err = fmt.Errorf("consumer %s: %w", k.Name, err)
	}
	return c, err
}

// Consumer returns one; ErrNoConsumer when there is none of that name.
func (s Consumers) Consumer(ctx context.Context, name string) (Consumer, error) {
	k, err := s.Keeper.Kept(ctx, name)
	switch {
	case err != nil:
		return Consumer{}, err
	case k.Revision == 0:
		return Consumer{}, ErrNoConsumer
	}
	return consumerOf(k)
}

// All returns them by name.
func (s Consumers) All(ctx context.Context) ([]Consumer, error) {
	kept, err := s.Keeper.AllKept(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Consumer, 0, len(kept))
	for _, k := range kept {
		c, err := consumerOf(k)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Consumer) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all, nil
}

// Save stores what c says, if it still is of the revision that c has (0: there is none), and updates that; else ErrMoved.
func (s Consumers) Save(ctx context.Context, c *Consumer) error {
	value, err := json.Marshal(consumerRecord{c.At.String(), c.Rooms, c.Kinds, c.Paused, c.Holder, c.Owned, c.Made, c.Moved})
	if err != nil {
		return err
	}
	revision, err := s.Keeper.Keep(ctx, Kept{c.Name, value, c.Revision})
	if err == nil {
		c.Revision = revision
	}
	return err
}

// changeTries is how often a change is tried again that others were faster than.
const changeTries = 10

// Change does f to a consumer, which is new when there is none of that name, and saves it; f may be called several times, and its error
// is returned.
func (s Consumers) Change(ctx context.Context, name string, f func(c *Consumer, isNew bool) error) (c Consumer, err error) {
	for range changeTries {
		c, err = s.Consumer(ctx, name)
		isNew := errors.Is(err, ErrNoConsumer)
		if isNew {
			c, err = Consumer{Name: name, Made: time.Now().UnixMilli()}, s.room(ctx)
		}
		if err == nil {
			err = f(&c, isNew)
		}
		if err == nil {
			err = s.Save(ctx, &c)
		}
		if !errors.Is(err, ErrMoved) {
			return c, err
		}
	}
	return c, err
}

// Refit gives a consumer another filter. Of logs that it did not read so far it reads what comes.
func (s Consumers) Refit(ctx context.Context, c *Consumer, f Filter) error {
	before := c.Filter().logs()
	c.Rooms, c.Kinds = f.Rooms, f.Kinds
	for _, l := range f.logs() {
		if slices.Contains(before, l) {
			continue
		}
		now, err := s.Now(ctx)
		if err != nil {
			return err
		}
		c.At[l] = now[l]
	}
	return nil
}

// room returns nil where there may be another one. Calls at one time may exceed it by as many.
func (s Consumers) room(ctx context.Context) error {
	kept, err := s.Keeper.AllKept(ctx)
	if err == nil && len(kept) >= MaxConsumers {
		err = ErrTooMany
	}
	return err
}

// Drop forgets a consumer.
func (s Consumers) Drop(ctx context.Context, c Consumer) error {
	return s.Keeper.Forget(ctx, Kept{Name: c.Name, Revision: c.Revision})
}

// Lag is how far a consumer is behind.
type Lag struct {
	Events  uint64  // behind its place, in the logs of its kinds: of all rooms and kinds, and so at most as many for it
	Seconds float64 // since the oldest that it has not acknowledged was stored; 0: there is none
}

// Lag looks how far a place is behind.
func (s Consumers) Lag(ctx context.Context, at Cursor, f Filter) (lag Lag, err error) {
	var now time.Time
	for _, l := range f.logs() {
		state, err := s.Store.State(ctx, l)
		if err != nil {
			return lag, err
		}
		if now.IsZero() {
			now = state.Asked
		}
		from := max(state.First, 1) - 1
		if p := at[l]; p.log == state.Name && p.seq > from {
			from = p.seq
		}
		if state.Last > from {
			lag.Events += state.Last - from
		}
	}
	if lag.Events == 0 {
		return lag, nil
	}
	page, err := s.Read(ctx, at, f, 1)
	if err != nil {
		return lag, err
	}
	oldest := int64(0)
	switch {
	case len(page.Entries) > 0:
		oldest = page.Entries[0].Time
	case page.More: // nothing of it so far
		for _, p := range page.Next {
			oldest = max(oldest, time.Unix(0, p.at).UnixMilli())
		}
	}
	if oldest > 0 {
		lag.Seconds = max(0, float64(now.UnixMilli()-oldest)/1000)
	}
	return lag, nil
}
