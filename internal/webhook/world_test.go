package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"liveroom/internal/hook"
	"liveroom/internal/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a journal of one log, records and letters in memory, and a platform.
type world struct {
	t *testing.T

	mu      sync.Mutex
	gifts   int
	kept    journal.Kept
	last    uint64
	away    bool // the store does not answer
	full    bool // no letter can be kept
	letters map[string]KeptLetter

	answer  func(Batch) error // of the platform; nil: it takes everything
	refused []Refused
	down    bool // the platform's breaker is open
	got     []string
	again   []string
	calls   int
}

func newWorld(t *testing.T) *world { return &world{t: t, letters: map[string]KeptLetter{}} }

func (w *world) set(f func()) { w.mu.Lock(); defer w.mu.Unlock(); f() }

func (w *world) give(n int) { w.set(func() { w.gifts += n }) }

var errStore = fmt.Errorf("no answer")

func (w *world) State(_ context.Context, l journal.Log) (journal.State, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	st := journal.State{Name: "x", First: 1, Asked: time.Now()}
	if l == journal.Gifts {
		st.Last = uint64(w.gifts)
	}
	if w.away {
		return st, errStore
	}
	return st, nil
}

func (w *world) Records(_ context.Context, l journal.Log, q journal.Query) (out []journal.Record, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := max(int(q.From), 1); l == journal.Gifts && i <= w.gifts && len(out) < q.Most; i++ {
		out = append(out, journal.Record{Seq: uint64(i), Time: time.UnixMilli(int64(i)), Room: "demo", Kind: journal.Gift, Event: json.RawMessage(`{"ev":"gift"}`)})
	}
	return out, nil
}

func (w *world) Kept(context.Context, string) (journal.Kept, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away {
		return journal.Kept{}, errStore
	}
	return w.kept, nil
}

func (w *world) Keep(_ context.Context, k journal.Kept) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.away:
		return 0, errStore
	case w.kept.Revision != k.Revision:
		return 0, journal.ErrMoved
	}
	w.last++
	k.Revision = w.last
	w.kept = k
	return k.Revision, nil
}

func (w *world) Forget(_ context.Context, k journal.Kept) error {
	w.set(func() { w.kept = journal.Kept{} })
	return nil
}

func (w *world) AllKept(context.Context) ([]journal.Kept, error) { return nil, nil }

func (w *world) PutLetter(_ context.Context, webhook, id string, letter []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.full {
		return errStore
	}
	w.last++
	w.letters[id] = KeptLetter{w.last, letter}
	return nil
}

func (w *world) LettersAfter(_ context.Context, webhook string, after uint64, limit int) (out []KeptLetter, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.letters {
		if l.Seq > after {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b KeptLetter) int { return int(a.Seq) - int(b.Seq) })
	return out[:min(limit, len(out))], nil
}

func (w *world) DropLetter(_ context.Context, seq uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, l := range w.letters {
		if l.Seq == seq {
			delete(w.letters, id)
		}
	}
	return nil
}

func (w *world) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return &hook.Failure{Outcome: hook.Away}
	}
	return nil
}

func (w *world) Call(ctx context.Context, c hook.Call, answer hook.Answer) error {
	raw, err := json.Marshal(c.Data)
	if err != nil || c.Type != EventsType || !c.Repeat {
		w.t.Errorf("call %+v: %v", c, err)
	}
	var b Batch
	if err := json.Unmarshal(raw, &b); err != nil || len(b.Events) == 0 {
		w.t.Errorf("batch %s: %v", raw, err)
	}
	w.mu.Lock()
	w.calls++
	f, down := w.answer, w.down
	w.mu.Unlock()
	if down {
		return &hook.Failure{Outcome: hook.Away}
	}
	if f != nil {
		if err := f(b); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return &hook.Failure{Outcome: hook.Abandoned}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	receipt := answer.(*Receipt)
	receipt.OK, receipt.Refused = true, w.refused
	for _, e := range b.Events {
		if b.Again {
			w.again = append(w.again, e.ID)
		} else if !slices.ContainsFunc(w.refused, func(r Refused) bool { return r.ID == e.ID }) {
			w.got = append(w.got, e.ID)
		}
	}
	return nil
}

func status(n int) error {
	return &hook.Failure{Outcome: hook.BadStatus, Status: n, Why: fmt.Errorf("HTTP status %d", n)}
}

func (w *world) consumers() journal.Consumers {
	return journal.Consumers{Journal: journal.Journal{Store: w}, Keeper: w}
}

// run runs a courier of a node until stop.
func (w *world) run(node string) (c *Courier, stop func()) {
	c = New(Config{
		Name: "books", Node: node, Kinds: []journal.Kind{journal.Gift}, Consumers: w.consumers(), Platform: w, Letters: w,
		Metrics: NewMetrics(prometheus.NewRegistry(), "books"), Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	return c, func() { cancel(); running.Wait() }
}

func (w *world) place() journal.Consumer {
	w.t.Helper()
	c, err := w.consumers().Consumer(w.t.Context(), Prefix+"books")
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// want compares what was delivered, from which on w begins anew.
func (w *world) want(from, to int) {
	w.t.Helper()
	var want []string
	for i := from; i <= to; i++ {
		want = append(want, fmt.Sprint("g", i))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.got, want) {
		w.t.Fatalf("delivered %v, want %v", w.got, want)
	}
	w.got = nil
}
