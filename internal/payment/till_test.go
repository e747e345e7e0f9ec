package payment

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"liveroom/fanout"
	"liveroom/fanout/link"
	"liveroom/fanout/store"
	"liveroom/internal/hook"
	"liveroom/internal/hooktest"
	"liveroom/protocol"
	"liveroom/room"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// window is how long the ledger knows an id again.
const window = time.Second

// books is a real ledger, some of whose answers a test may take away.
type books struct {
	*store.Payments
	refuse, lose atomic.Bool // of StorePaidGift: before, after the store has acted
}

func (b *books) Intend(ctx context.Context, roomID, user, id string, data []byte) (uint64, error) {
	attempt, err := b.Payments.Intend(ctx, roomID, user, id, data)
	if errors.Is(err, store.ErrConflict) {
		err = fmt.Errorf("%w: %w", ErrOpen, err)
	}
	return attempt, err
}

func (b *books) Intents(ctx context.Context, each func(Intent) bool) error {
	return b.Payments.Intents(ctx, func(i store.Intent) bool { return each(Intent(i)) })
}

func (b *books) StorePaidGift(ctx context.Context, roomID, user, id string, event []byte, paid protocol.Payment) (protocol.Receipt, error) {
	if b.refuse.Load() {
		return protocol.Receipt{}, room.ErrRefused
	}
	receipt, err := b.Payments.StorePaidGift(ctx, roomID, user, id, event, paid)
	if errors.Is(err, link.ErrRefused) {
		err = fmt.Errorf("%w: %w", room.ErrRefused, err)
	}
	if b.lose.Load() {
		return protocol.Receipt{}, link.ErrUnknown
	}
	return receipt, err
}

// shop is a till between a real ledger and a wallet.
type shop struct {
	*Till
	t      *testing.T
	books  *books
	wallet *hooktest.Wallet
	// twist may answer in the wallet's place, or do something first; false: the wallet answers.
	twist func(kind string, w http.ResponseWriter, r *http.Request) bool
	reg   *prometheus.Registry
}

func openShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{t: t, wallet: &hooktest.Wallet{Secret: secret, Funds: 1000}, reg: prometheus.NewRegistry(), twist: func(string, http.ResponseWriter, *http.Request) bool { return false }}
	if err := s.wallet.Open(filepath.Join(t.TempDir(), "wallet")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.wallet.Close() })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		var q struct{ Type string }
		_ = json.Unmarshal(body, &q)
		if !s.twist(q.Type, w, r) {
			s.wallet.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	fabric, err := fanout.Open(t.Context(), fanout.Config{NodeID: "n1", DataDir: t.TempDir(), GiftRetry: window}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fabric.Close(context.Background()) })
	s.books = &books{Payments: fabric.Store.Payments}
	key, err := hook.ParseSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := hook.New(hook.Config{
		Name: "gift", URL: server.URL, Secrets: []hook.Secret{key}, Plain: hook.PlainLoopback, Timeout: 20 * time.Second, InFlight: 8, Waiting: 64,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(endpoint.Close)
	s.Till = New(Config{Node: "n1", Ledger: s.books, Platform: endpoint, Metrics: NewMetrics(s.reg), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	return s
}

// run settles in the background until the test ends.
func (s *shop) run() {
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { s.Run(ctx) })
	s.t.Cleanup(func() { stop(); all.Wait() })
}

func (s *shop) sell(id string, count int) (protocol.Receipt, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	g := protocol.Gift{User: protocol.User{ID: "ann"}, Gift: "rose", Count: count}
	return s.Sell(ctx, &room.Sale{Room: "demo", ID: id, Gift: g, Price: 10, Event: protocol.AppendGift(nil, g)})
}

// settled waits until no intent is left, and compares the wallet with the ledger.
func (s *shop) settled(states map[string]int) {
	s.t.Helper()
	deadline, tick := time.After(40*time.Second), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for open := -1; open != 0; {
		select {
		case <-tick.C:
			open = 0
			if err := s.books.Intents(s.t.Context(), func(Intent) bool { open++; return true }); err != nil {
				s.t.Fatal(err)
			}
		case <-deadline:
			s.t.Fatalf("%d intents are left", open)
		}
	}
	rows, wrong := s.wallet.Rows()
	have, taken := map[string]int{}, int64(0)
	for _, r := range rows {
		have[r.State]++
		if r.State != "cancelled" {
			taken += r.Amount
		}
	}
	given := int64(0)
	gifts, err := s.books.Gifts(s.t.Context(), "demo", 0, 1000)
	for _, g := range gifts {
		one, _ := protocol.ParseGift(g.Event)
		given += 10 * int64(one.Count)
	}
	if err != nil || taken != given || fmt.Sprint(have) != fmt.Sprint(states) || len(wrong) > 0 {
		s.t.Errorf("taken %d, given %d; %v, want %v; wrong: %q; %v", taken, given, have, states, wrong, err)
	}
}

func TestAGiftIsPaidStoredAndConfirmed(t *testing.T) {
	s := openShop(t)
	s.run()
	first, err := s.sell("1", 3)
	if err != nil || first.Duplicate {
		t.Fatal(first, err)
	}
	s.settled(map[string]int{"confirmed": 1})
	got, err := s.books.Gift(t.Context(), "demo", first.Seq)
	if err != nil || got.Paid.Attempt == 0 || got.Paid.Ref != fmt.Sprintf("w-%d", got.Paid.Attempt) {
		t.Errorf("stored with %+v, %v", got.Paid, err)
	}
	rows, _ := s.wallet.Rows()
	if rows[0].Seq != first.Seq || rows[0].Amount != 30 {
		t.Errorf("the wallet has %+v", rows[0])
	}
	<-time.After(window + 100*time.Millisecond) // the ledger's own memory is over: only the platform remembers
	again, err := s.sell("1", 3)
	if err != nil || !again.Duplicate || again.Seq != first.Seq {
		t.Errorf("again: %+v, %v", again, err)
	}
	s.settled(map[string]int{"confirmed": 1})
}

func TestWhatThePlatformRefuses(t *testing.T) {
	s := openShop(t)
	s.run()
	_, err := s.sell("1", 101) // 1010 of 1000
	var told *protocol.Error
	if !errors.As(err, &told) || told.Reason != protocol.ReasonFunds || told.Detail != "please top up" {
		t.Errorf("told %v", err)
	}
	s.settled(map[string]int{})
	s.twist = func(kind string, w http.ResponseWriter, _ *http.Request) bool {
		if kind == Reserve {
			io.WriteString(w, `{"allow":false,"reason":"we_are_closed","text":"  come\nback\u202e later "}`)
		}
		return kind == Reserve
	}
	if _, err = s.sell("2", 1); !errors.As(err, &told) || told.Reason != protocol.ReasonDeclined || told.Detail != "come back later" {
		t.Errorf("told %v", err)
	}
	s.settled(map[string]int{})
}

// TestWhateverIsLostMoneyFollowsTheLedger: answers that are lost before or after the wallet or the store has acted.
func TestWhateverIsLostMoneyFollowsTheLedger(t *testing.T) {
	cut := func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }
	for name, c := range map[string]struct {
		twist   func(s *shop, kind string, w http.ResponseWriter, r *http.Request, n int) bool
		refuse  bool
		lose    bool
		want    error // nil: acknowledged
		unknown bool
		states  map[string]int
	}{
		"a reserve that never arrives": {twist: func(_ *shop, kind string, w http.ResponseWriter, r *http.Request, _ int) bool {
			return kind == Reserve && cut(w, r)
		}, want: room.ErrRefused, states: map[string]int{"cancelled": 1}},
		"all answers to the reserve": {twist: func(s *shop, kind string, w http.ResponseWriter, r *http.Request, _ int) bool {
			if kind == Reserve {
				s.wallet.ServeHTTP(httptest.NewRecorder(), r)
				return cut(w, r)
			}
			return false
		}, want: room.ErrRefused, states: map[string]int{"cancelled": 1}},
		"the first answer to the reserve": {twist: func(s *shop, kind string, w http.ResponseWriter, r *http.Request, n int) bool {
			if kind == Reserve && n == 1 {
				s.wallet.ServeHTTP(httptest.NewRecorder(), r)
				return cut(w, r)
			}
			return false
		}, states: map[string]int{"confirmed": 1}},
		"the answers to the first confirm": {twist: func(s *shop, kind string, w http.ResponseWriter, r *http.Request, n int) bool {
			if kind == Confirm && n <= 3 {
				s.wallet.ServeHTTP(httptest.NewRecorder(), r)
				return cut(w, r)
			}
			return false
		}, states: map[string]int{"confirmed": 1}},
		"a confirm that a stranger answers": {twist: func(_ *shop, kind string, w http.ResponseWriter, _ *http.Request, n int) bool {
			if kind == Confirm && n <= 1 {
				io.WriteString(w, "<html>welcome to the hotel</html>")
				return true
			}
			return false
		}, states: map[string]int{"confirmed": 1}},
		"the store refuses":          {refuse: true, want: room.ErrRefused, states: map[string]int{"cancelled": 1}},
		"the store's answer is lost": {lose: true, unknown: true, states: map[string]int{"confirmed": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			counts, mu := map[string]int{}, sync.Mutex{}
			if c.twist != nil {
				s.twist = func(kind string, w http.ResponseWriter, r *http.Request) bool {
					mu.Lock()
					counts[kind]++
					n := counts[kind]
					mu.Unlock()
					return c.twist(s, kind, w, r, n)
				}
			}
			s.books.refuse.Store(c.refuse)
			s.books.lose.Store(c.lose)
			s.run()
			_, err := s.sell("1", 2)
			switch {
			case c.unknown && (err == nil || errors.Is(err, room.ErrRefused)), !c.unknown && !errors.Is(err, c.want):
				t.Errorf("told %v", err)
			}
			s.settled(c.states)
			s.books.refuse.Store(false)
			s.books.lose.Store(false)
			s.twist = func(string, http.ResponseWriter, *http.Request) bool { return false }
			if r, err := s.sell("1", 2); err != nil || r.Duplicate != (c.states["confirmed"] == 1) {
				t.Errorf("the same id again: %+v, %v", r, err)
			}
			s.settled(map[string]int{"confirmed": 1})
		})
	}
}

// TestTheSweepSettlesWhatANodeLeft at any point of a gift's way, and its store can come no later.
func TestTheSweepSettlesWhatANodeLeft(t *testing.T) {
	s := openShop(t)
	kept := func(id string) (noted, *room.Sale) {
		g := protocol.Gift{User: protocol.User{ID: "ann"}, Gift: "rose", Count: 1}
		sale := &room.Sale{Room: "demo", ID: id, Gift: g, Price: 10, Event: protocol.AppendGift(nil, g)}
		n := noted{Data: dataOf(sale), From: s.books.LedgerEnd(), Node: "n1"}
		raw, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if n.Attempt, err = s.books.Intend(t.Context(), "demo", "ann", id, raw); err != nil {
			t.Fatal(err)
		}
		return n, sale
	}
	kept("nothing sent")
	reserved, late := kept("reserved")
	if err := s.cfg.Platform.Call(t.Context(), hook.Call{ID: "r", Type: Reserve, Data: reserved.Data}, &Verdict{}); err != nil {
		t.Fatal(err)
	}
	stored, sale := kept("stored")
	if _, w, err := s.Till.sell(t.Context(), sale, stored); err != nil || w.do != confirmIt {
		t.Fatal(w, err)
	}
	if _, err := s.sell("reserved", 1); !errors.Is(err, ErrOpen) {
		t.Errorf("another node was asked with an id that is not settled: %v", err)
	}
	s.run()
	s.settled(map[string]int{"cancelled": 2, "confirmed": 1})
	if _, _, err := s.Till.sell(t.Context(), late, reserved); err == nil {
		t.Error("the node that was thought dead stored its gift after the attempt had ended")
	}
	if n := testutil.ToFloat64(s.cfg.Metrics.ends.WithLabelValues("confirmed", "sweep")); n != 1 {
		t.Errorf("%v confirmed by the sweep", n)
	}
	s.settled(map[string]int{"cancelled": 2, "confirmed": 1})
}
