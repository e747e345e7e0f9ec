package rulebook

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/internal/edition"
	"liveroom/limit"
)

func TestSeedPublishAndRollbackReachEveryNode(t *testing.T) {
	reg := prometheus.NewRegistry()
	store := &shelf{}
	a := openBook(t, Config{Metrics: edition.NewMetrics(reg, "rules"), Store: store})
	b := openBook(t, Config{Store: store, Seed: spec(t, 99)}) // its seed loses: the store has one
	if burst(t, a) != 10 || burst(t, b) != 10 {
		t.Fatalf("bursts %d and %d", burst(t, a), burst(t, b))
	}
	publish(t, a, 20)
	if burst(t, b) != 20 || b.Current().Version != 2 || b.Current().Author != "ann" {
		t.Fatalf("b has burst %d, %+v", burst(t, b), b.Current())
	}
	back, err := b.Rollback(t.Context(), 1, 0, "bob", "too much")
	if err != nil || back.Version != 3 || back.Restores != 1 {
		t.Fatalf("%+v, %v", back, err)
	}
	if burst(t, a) != 10 {
		t.Fatalf("a has burst %d", burst(t, a))
	}
	history, err := a.History(t.Context(), 0, 10)
	if err != nil || len(history) != 3 {
		t.Fatalf("%v, %v", history, err)
	}
	want := edition.Change{Rule: "talk", Field: "burst", Before: 10.0, After: 20.0}
	if got := history[1].Changes; len(got) != 1 || got[0] != want {
		t.Fatalf("changes %+v", got)
	}
	if got := counted(t, reg, "rollbacks_total", "rollback"); got != 1 {
		t.Errorf("%v rollbacks counted", got)
	}
}

// TestAChangeIsCompiledOnceANode: by the node that publishes when it is looked at, by each other when the news comes; a rollback,
// what the guard compares with and a history cost nothing more.
func TestAChangeIsCompiledOnceANode(t *testing.T) {
	store := &shelf{}
	var made [2]int
	var books [2]*Book
	for i := range books {
		b, err := open(t.Context(), &Book{
			cfg:     Config{Store: store, Gate: gate(t), Seed: spec(t, 10), Log: slog.New(slog.DiscardHandler)},
			compile: func(s *limit.Spec) (*limit.Rules, error) { made[i]++; return s.Compile() },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		books[i] = b
	}
	for what, change := range map[string]func() error{
		"a publish":  func() error { publish(t, books[0], 20); return nil },
		"a rollback": func() error { _, err := books[0].Rollback(t.Context(), 1, 0, "bob", ""); return err },
		"the guard's rollback": func() error {
			v := books[0].Current().Version
			return books[0].GuardRollback(t.Context(), v, v-1, "why")
		},
	} {
		publish(t, books[0], 30)
		made = [2]int{}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if made != [2]int{1, 1} {
			t.Errorf("%s is compiled %d times by who publishes, %d by another node", what, made[0], made[1])
		}
		base, _, err := books[1].Unproved(t.Context(), books[1].Current().Version, time.Nanosecond)
		if _, again := books[0].History(t.Context(), 0, 50); err != nil || again != nil || base.Compiled() == nil {
			t.Fatal(base, err, again)
		}
		if made != [2]int{1, 1} {
			t.Errorf("after %s a look at the history is compiled: %v", what, made)
		}
	}
}

// TestOnlyABookCompiles: beside the book, the server compiles the configuration's set and its own bound of new rooms, once at its start.
func TestOnlyABookCompiles(t *testing.T) {
	var calls []string
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "limit" || d.Name() == "examples") { // the library, and programs of its own
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), ".Compile()") || strings.Contains(string(text), "limit.Spec).Compile") {
			calls = append(calls, filepath.ToSlash(path))
		}
		return err
	})
	if want := []string{"../../internal/admit/arrivals.go", "../../internal/node/rulesource.go", "../../internal/rulebook/book.go"}; err != nil || !slices.Equal(calls, want) {
		t.Errorf("rules are compiled in %v, want %v: %v", calls, want, err)
	}
}

func TestPublishRefuses(t *testing.T) {
	store := &shelf{}
	judged := errors.New("12 % of users more")
	b := openBook(t, Config{Store: store, Review: review{judge: func(_, proposed *limit.Rules) error {
		if r, _ := proposed.Rule("talk"); r.Burst < 5 {
			return fmt.Errorf("%w: %w", ErrNeedsOverride, judged)
		}
		return nil
	}}})
	publish(t, b, 20)

	_, err := b.Publish(t.Context(), Draft{Rules: spec(t, 30).Rules}, 1)
	if !errors.Is(err, edition.ErrConflict) {
		t.Errorf("on an old version: %v", err)
	}
	bad := spec(t, 30).Rules
	bad[0].Burst, bad[0].Rate = 0, -1
	var faults limit.Faults
	if _, err := b.Publish(t.Context(), Draft{Rules: bad}, 2); !errors.As(err, &faults) || len(faults) < 2 {
		t.Errorf("a bad set: %v", err)
	}
	low := Draft{Rules: spec(t, 2).Rules}
	if _, err := b.Publish(t.Context(), low, 2); !errors.Is(err, ErrNeedsOverride) || !errors.Is(err, judged) {
		t.Errorf("a low threshold: %v", err)
	}
	if burst(t, b) != 20 || b.Current().Version != 2 {
		t.Fatal("a refused set changed something")
	}
	low.Override = true
	if s, err := b.Publish(t.Context(), low, 2); err != nil || !s.Override || burst(t, b) != 2 {
		t.Errorf("with override: %+v, %v", s, err)
	}
	if _, err := b.Rollback(t.Context(), 77, 0, "ann", ""); !errors.Is(err, edition.ErrNotFound) {
		t.Errorf("an unknown version: %v", err)
	}
}

// TestCorruptSetChangesNothing: the last good set survives a corrupt payload, also over a restart, and a new set goes
// on top of it.
func TestCorruptSetChangesNothing(t *testing.T) {
	reg := prometheus.NewRegistry()
	store := &shelf{}
	b := openBook(t, Config{Metrics: edition.NewMetrics(reg, "rules"), Store: store})
	publish(t, b, 20)
	for _, raw := range []string{"", "{", `{"format":9,"rules":[]}`, `{"format":1,"rules":[{"name":"x"}]}`, `{"format":1,"surprise":1,"rules":[]}`} {
		if _, err := store.Publish(t.Context(), []byte(raw), uint64(len(store.records))); err != nil {
			t.Fatal(err)
		}
		if burst(t, b) != 20 || b.Current().Version != 2 {
			t.Fatalf("%q changed the limits", raw)
		}
	}
	if got := counted(t, reg, "loads_total", "failed"); got != 5 {
		t.Errorf("%v failed loads counted", got)
	}
	restarted := openBook(t, Config{Store: store})
	if burst(t, restarted) != 20 {
		t.Fatalf("after a restart: %d", burst(t, restarted))
	}
	if s := publish(t, b, 30); s.Version != 8 || burst(t, restarted) != 30 {
		t.Fatalf("%+v", s)
	}
}

func TestOlderVersionArrivingLateIsIgnored(t *testing.T) {
	store := &shelf{}
	b := openBook(t, Config{Store: store})
	publish(t, b, 20)
	publish(t, b, 30)
	for _, late := range store.followers {
		late(store.records[1])
	}
	if burst(t, b) != 30 {
		t.Fatalf("burst %d", burst(t, b))
	}
}

func TestStartWithoutTheStoreTakesTheKeptCopy(t *testing.T) {
	store, keep := &shelf{}, filepath.Join(t.TempDir(), "limits.json")
	publish(t, openBook(t, Config{Store: store, Keep: keep}), 20)

	store.away = true
	b := openBook(t, Config{Store: store, Keep: keep})
	if burst(t, b) != 20 || b.Current().Version != 2 {
		t.Fatalf("burst %d, %+v", burst(t, b), b.Current())
	}
	if err := os.WriteFile(keep, []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b := openBook(t, Config{Store: store, Keep: keep}); burst(t, b) != 10 {
		t.Fatalf("with a damaged copy: burst %d", burst(t, b))
	}
}

func TestGuardGoesBackOnlyFromItsVersion(t *testing.T) {
	store := &shelf{}
	var told []uint64
	var b *Book
	b = openBook(t, Config{Store: store, Review: review{published: func() { told = append(told, b.kept.Before().Version, b.Current().Version) }}})
	publish(t, b, 2)
	publish(t, b, 3)
	if err := b.GuardRollback(t.Context(), 2, 1, "too late"); !errors.Is(err, edition.ErrConflict) {
		t.Fatalf("somebody published since: %v", err)
	}
	if err := b.GuardRollback(t.Context(), 3, 0, "refuses 40 % of users"); err != nil {
		t.Fatal(err)
	}
	if c := b.Current(); c.Kind != edition.KindGuard || c.Restores != 2 || burst(t, b) != 2 || !strings.Contains(c.Note, "40 %") {
		t.Fatalf("%+v", c)
	}
	publish(t, b, 5)
	if err := b.GuardRollback(t.Context(), 5, 1, "a bad set on top of a bad one"); err != nil || b.Current().Restores != 1 {
		t.Fatalf("%v, %+v", err, b.Current())
	}
	if _, err := store.Publish(t.Context(), []byte("damaged"), 6); err != nil {
		t.Fatal(err)
	}
	publish(t, b, 8)
	publish(t, b, 9)
	if err := b.GuardRollback(t.Context(), 9, 7, "what it went back to can't be read"); err != nil || b.Current().Restores != 6 {
		t.Fatalf("%v, %+v", err, b.Current())
	}
	if err := b.GuardRollback(t.Context(), 1, 0, "first"); !errors.Is(err, edition.ErrNotFound) {
		t.Errorf("nothing before the first: %v", err)
	}
	if fmt.Sprint(told) != "[1 2 2 3 3 4 4 5 5 6 6 8 8 9 9 10]" {
		t.Errorf("told of %v", told)
	}
}

func TestDiffNamesWhatCameAndWent(t *testing.T) {
	before, after := spec(t, 10).Rules, spec(t, 10).Rules
	after[0].Name = "speak"
	got := diff(before, after)
	if len(got) != 2 || got[0].Rule != "speak" || got[0].Before != nil || got[1].Rule != "talk" || got[1].After != nil {
		t.Fatalf("%+v", got)
	}
	if d := diff(before, before); len(d) != 0 {
		t.Fatalf("%+v", d)
	}
}
