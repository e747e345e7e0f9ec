package rulebook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"liveroom/internal/edition"
	"liveroom/limit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shelf is a Store in memory that many books share.
type shelf struct {
	mu        sync.Mutex
	records   []edition.Record
	followers map[int]func(edition.Record)
	away      bool
	endings   []Ending
}

var errAway = errors.New("store is away")

func (s *shelf) Publish(_ context.Context, payload []byte, after uint64) (uint64, error) {
	s.mu.Lock()
	if s.away {
		s.mu.Unlock()
		return 0, errAway
	}
	if uint64(len(s.records)) != after {
		s.mu.Unlock()
		return 0, edition.ErrConflict
	}
	r := edition.Record{Version: after + 1, Payload: payload, Time: time.Now()}
	s.records = append(s.records, r)
	var tell []func(edition.Record)
	for _, f := range s.followers {
		tell = append(tell, f)
	}
	s.mu.Unlock()
	for _, f := range tell {
		f(r)
	}
	return r.Version, nil
}

func (s *shelf) History(_ context.Context, before uint64, limit int) ([]edition.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, errAway
	}
	var out []edition.Record
	for i := len(s.records) - 1; i >= 0 && len(out) < limit; i-- {
		if before == 0 || s.records[i].Version < before {
			out = append(out, s.records[i])
		}
	}
	return out, nil
}

func (s *shelf) Follow(h func(edition.Record)) (func(), error) {
	s.mu.Lock()
	if s.followers == nil {
		s.followers = map[int]func(edition.Record){}
	}
	n := len(s.followers)
	s.followers[n] = h
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.followers, n)
	}, nil
}

func (s *shelf) Ended(_ context.Context, e Ending) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endings = append(s.endings, e)
	return nil
}

func (s *shelf) Endings(context.Context) ([]Ending, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.endings)
	slices.Reverse(out)
	return out, nil
}

// review is a Review by functions; those that are nil have nothing to say.
type review struct {
	check     func([]limit.Rule) limit.Faults
	judge     func(today, proposed *limit.Rules) error
	published func()
}

func (r review) Check(rules []limit.Rule) limit.Faults {
	if r.check == nil {
		return nil
	}
	return r.check(rules)
}

func (r review) Judge(_ context.Context, today, proposed *limit.Rules) error {
	if r.judge == nil {
		return nil
	}
	return r.judge(today, proposed)
}

func (r review) Published(context.Context) {
	if r.published != nil {
		r.published()
	}
}

// counted is one of a book's metrics.
func counted(t testing.TB, reg *prometheus.Registry, name, label string) float64 {
	t.Helper()
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			if f.GetName() == "liveroom_rules_"+name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	t.Fatal("no metric " + name)
	return 0
}

func ruleText(burst int) string {
	return fmt.Sprintf("rules:\n  - {name: talk, action: danmaku, scope: user, rate: 0, burst: %d}\n", burst)
}

func spec(t testing.TB, burst int) *limit.Spec {
	t.Helper()
	s, err := limit.Parse([]byte(ruleText(burst)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func gate(t testing.TB) *limit.Gate {
	t.Helper()
	rules, err := (&limit.Spec{}).Compile()
	if err != nil {
		t.Fatal(err)
	}
	return limit.NewGate(rules, limit.NewClock())
}

func openBook(t testing.TB, cfg Config) *Book {
	t.Helper()
	if cfg.Gate == nil {
		cfg.Gate = gate(t)
	}
	if cfg.Seed == nil {
		cfg.Seed = spec(t, 10)
	}
	cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	b, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// burst is what the gate of a book grants a new user.
func burst(t testing.TB, b *Book) int {
	t.Helper()
	g := b.cfg.Gate
	s := limit.Subject{Scope: limit.ScopeUser}
	for n := 0; ; n++ {
		if d := g.Decide(g.Now(), &limit.Request{Action: limit.Danmaku, Cost: 1}, &s); d.Verdict != limit.Allow {
			return n
		}
		if n > 1000 {
			t.Fatal("no limit is in force")
		}
	}
}

func publish(t testing.TB, b *Book, n int) *Set {
	t.Helper()
	s, err := b.Publish(t.Context(), Draft{Rules: spec(t, n).Rules, Author: "ann", Note: "because"}, b.Current().Version)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
