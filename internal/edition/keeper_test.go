package edition

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// page is a document of one text.
type page struct {
	Story
	Text    string
	Changes int
}

// shelf is a Store in memory that many keepers share.
type shelf struct {
	mu        sync.Mutex
	records   []Record
	followers []func(Record)
	away      bool
}

var errAway = errors.New("store is away")

func (s *shelf) Publish(_ context.Context, payload []byte, after uint64) (uint64, error) {
	s.mu.Lock()
	if s.away || uint64(len(s.records)) != after {
		defer s.mu.Unlock()
		if s.away {
			return 0, errAway
		}
		return 0, ErrConflict
	}
	r := Record{Version: after + 1, Payload: payload, Time: time.Now()}
	s.records = append(s.records, r)
	tell := slices.Clone(s.followers)
	s.mu.Unlock()
	for _, f := range tell {
		f(r)
	}
	return r.Version, nil
}

func (s *shelf) History(_ context.Context, before uint64, limit int) (out []Record, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, errAway
	}
	for i := len(s.records) - 1; i >= 0 && len(out) < limit; i-- {
		if before == 0 || s.records[i].Version < before {
			out = append(out, s.records[i])
		}
	}
	return out, nil
}

func (s *shelf) Follow(h func(Record)) (func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followers = append(s.followers, h)
	return func() {}, nil
}

func decodeText(raw json.RawMessage, p *page) error {
	err := json.Unmarshal(raw, &p.Text)
	if err == nil && p.Text == "" {
		err = errors.New("empty")
	}
	return err
}

func open(t *testing.T, s *shelf, seed, keep string) *Keeper[page, *page] {
	t.Helper()
	return openMaking(t, s, seed, keep, func(*page) error { return nil })
}

func openMaking(t *testing.T, s *shelf, seed, keep string, makes func(*page) error) *Keeper[page, *page] {
	t.Helper()
	k, err := Open[page](t.Context(), Config[page]{
		Name: "pages", Store: s, Key: "text", Keep: keep, Reseed: true, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Seed:    &page{Story: Story{Kind: KindSeed, Author: "configuration"}, Text: seed},
		Content: func(p *page) any { return p.Text }, Decode: decodeText,
		Make: makes, Enforce: func(*page) {},
		Changes: func(before, after *page) int {
			after.Changes = strings.Compare(before.Text, after.Text)
			return after.Changes
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

func publish(t *testing.T, k *Keeper[page, *page], text string) {
	t.Helper()
	if _, err := k.Publish(t.Context(), &page{Story: Story{Kind: KindPublish, Author: "ann"}, Text: text}, k.Current().Version); err != nil {
		t.Fatal(err)
	}
}

// TestConfigurationIsTheSourceUntilSomebodyPublishes: a node that starts with another configuration brings it to all nodes, and no
// more once somebody has published; not even when what was published is undone.
func TestConfigurationIsTheSourceUntilSomebodyPublishes(t *testing.T) {
	s := &shelf{}
	a := open(t, s, "one", "")
	b := open(t, s, "two", "")
	if a.Current().Text != "two" || a.Current().Version != 2 || b.Current().Kind != KindSeed {
		t.Fatalf("%+v, %+v", a.Current(), b.Current())
	}
	if open(t, s, "two", ""); len(s.records) != 2 {
		t.Fatalf("the same configuration is stored again: %d", len(s.records))
	}
	publish(t, a, "three")
	if c := open(t, s, "four", ""); c.Current().Text != "three" || c.Current().Changes != 0 || len(s.records) != 3 {
		t.Fatalf("%+v", c.Current())
	}
	if _, err := a.Restore(t.Context(), 1, 3, "bob", ""); err != nil {
		t.Fatal(err)
	}
	if c := open(t, s, "four", ""); c.Current().Text != "one" || c.Current().Restores != 1 {
		t.Fatalf("%+v", c.Current())
	}
}

// TestSeedOnTopOfWhatCannotBeRead: what a newer server has published is not written over by an older one's configuration.
func TestSeedOnTopOfWhatCannotBeRead(t *testing.T) {
	s := &shelf{}
	open(t, s, "one", "")
	if _, err := s.Publish(t.Context(), []byte(`{"format":2,"text":"of to-morrow"}`), 1); err != nil {
		t.Fatal(err)
	}
	if k := open(t, s, "two", ""); k.Current().Text != "one" || len(s.records) != 2 {
		t.Fatalf("%+v, %d stored", k.Current(), len(s.records))
	}
}

func TestStartWithoutTheStore(t *testing.T) {
	s, keep := &shelf{}, filepath.Join(t.TempDir(), "kept.json")
	publish(t, open(t, s, "one", keep), "two")
	s.away = true
	k := open(t, s, "one", keep)
	if k.Current().Text != "two" || k.Current().Version != 2 {
		t.Fatalf("%+v", k.Current())
	}
	if err := k.May(1); !errors.Is(err, ErrConflict) {
		t.Fatal(err)
	}
}

// TestWhatTakesLongToMakeKeepsNobodyWaiting: a newer edition comes in force meanwhile, and is not replaced by the one that took long.
func TestWhatTakesLongToMakeKeepsNobodyWaiting(t *testing.T) {
	s, keep := &shelf{}, filepath.Join(t.TempDir(), "kept.json")
	begun, finish := make(chan bool), make(chan bool)
	k := openMaking(t, s, "one", keep, func(p *page) error {
		if p.Text == "long" {
			close(begun)
			<-finish
		}
		return nil
	})
	other := open(t, s, "one", "")
	var long sync.WaitGroup
	long.Go(func() { publish(t, other, "long") })
	<-begun
	if _, err := k.Publish(t.Context(), &page{Story: Story{Kind: KindPublish, Author: "bob"}, Text: "short"}, 2); err != nil {
		t.Error(err)
	}
	if is := k.Current(); is.Text != "short" || is.Version != 3 {
		t.Errorf("%+v is in force", is)
	}
	close(finish)
	long.Wait()
	if is := k.Current(); is.Text != "short" || k.Before().Text != "one" {
		t.Errorf("%+v is in force, and before it %+v", is, k.Before())
	}
	s.away = true
	if is := open(t, s, "one", keep).Current(); is.Text != "short" {
		t.Errorf("%+v was kept", is)
	}
}

// FuzzDecode: whatever is in the store, an edition is taken whole or not at all.
func FuzzDecode(f *testing.F) {
	good, err := encode(&Story{Kind: KindPublish, Author: "ann", Note: `"`}, "text", "words")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"format":1,"text":"x"}`))
	f.Add([]byte(`{"format":1,"text":null}`))
	f.Add([]byte(`{"format":1,"text":"x","x":1}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, content, err := decode(Record{Version: 7, Payload: raw}, "text")
		if err != nil {
			return
		}
		again, err := encode(&s, "text", content)
		if err != nil {
			t.Fatal(err)
		}
		if same, _, err := decode(Record{Version: 7, Payload: again}, "text"); err != nil || same != s {
			t.Fatalf("%+v, %+v: %v", s, same, err)
		}
	})
}
