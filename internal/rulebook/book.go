package rulebook

import (
	"context"
	"sync"
	"time"

	"liveroom/internal/edition"
	"liveroom/limit"
)

// Book is one node's view of the limits.
type Book struct {
	cfg     Config
	kept    *edition.Keeper[Set, *Set]
	compile func(*limit.Spec) (*limit.Rules, error) // (*limit.Spec).Compile

	stop  context.CancelFunc
	loops sync.WaitGroup
}

// Open puts the best set at hand in force and follows the source from then on. ctx bounds the opening alone.
func Open(ctx context.Context, cfg Config) (*Book, error) {
	return open(ctx, &Book{cfg: cfg, compile: (*limit.Spec).Compile})
}

func open(ctx context.Context, b *Book) (_ *Book, err error) {
	cfg := &b.cfg
	if cfg.FileEvery == 0 {
		cfg.FileEvery = 900 * time.Millisecond
	}
	if cfg.Review == nil {
		cfg.Review = noReview{}
	}
	seed := &Set{Story: edition.Story{Kind: edition.KindSeed, Author: "configuration", Time: time.Now().UTC()}, Rules: cfg.Seed.Rules}
	var store edition.Store
	if cfg.Store != nil {
		store = cfg.Store
	} else {
		seed.Kind = edition.KindFile
		seed.Version = uint64(max(cfg.Seed.Version, 1)) // 0 would look like a node without rules
	}
	b.kept, err = edition.Open[Set](ctx, edition.Config[Set]{
		Name: "limits", Store: store, Seed: seed, Key: "rules", Content: func(s *Set) any { return s.Rules }, Decode: decode, Make: b.make,
		Enforce: b.enforce, Changes: changes, Keep: cfg.Keep, Node: cfg.Node, Log: cfg.Log, Metrics: cfg.Metrics,
	})
	if err != nil {
		return nil, err
	}
	background, stop := context.WithCancel(context.Background())
	b.stop = stop
	if cfg.Store == nil && cfg.File != "" {
		b.loops.Go(func() { b.watchFile(background) })
	}
	return b, nil
}

// make compiles a set, once on its way from an author to the gates of a node. The error is [limit.Faults].
func (b *Book) make(s *Set) (err error) {
	s.compiled, err = b.compile(&limit.Spec{Version: int64(s.Version), Rules: s.Rules})
	return err
}

// enforce has the gate go by s.
func (b *Book) enforce(s *Set) {
	s.compiled = s.compiled.WithVersion(int64(s.Version)) // it had none yet when this node published it
	b.cfg.Gate.Swap(s.compiled)
}

// Current returns the set in force on this node.
func (b *Book) Current() *Set { return b.kept.Current() }

// Close ends the book's goroutines; the set in force stays in force.
func (b *Book) Close() {
	b.stop()
	b.kept.Close()
	b.loops.Wait()
}
