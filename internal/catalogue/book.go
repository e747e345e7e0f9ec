package catalogue

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"liveroom/internal/edition"
	"liveroom/protocol"
)

// Edition is one version of the catalogue.
type Edition struct {
	edition.Story
	Gifts   []protocol.CatalogueGift `json:"gifts"`
	Changes []edition.Change         `json:"changes,omitempty"` // against the version before; only in a history
}

// Faults are all that is wrong with a catalogue. It is an error.
type Faults []protocol.GiftFault

// Error names the first of them.
func (f Faults) Error() string {
	return fmt.Sprintf("gifts%s: allowed is %s; received %s (%d faults)", f[0].Path, f[0].Allowed, f[0].Received, len(f))
}

// Book is one node's view of the catalogue.
type Book struct {
	kept *edition.Keeper[Edition, *Edition]
}

// Open puts the newest catalogue in force by offer, which must not block, and follows it from then on. Of cfg it takes Store, Keep, Node, Log
// and Metrics. ctx bounds the opening alone.
func Open(ctx context.Context, cfg edition.Config[Edition], seed []protocol.CatalogueGift, offer func(protocol.Catalogue)) (*Book, error) {
	cfg.Name, cfg.Key, cfg.Reseed = "catalogue", "gifts", true
	cfg.Seed = &Edition{Story: edition.Story{Kind: edition.KindSeed, Author: "configuration", Time: time.Now().UTC()}, Gifts: seed}
	if seed == nil {
		cfg.Seed.Gifts = []protocol.CatalogueGift{}
	}
	cfg.Content = func(e *Edition) any { return e.Gifts }
	cfg.Decode = func(raw json.RawMessage, e *Edition) error { return json.Unmarshal(raw, &e.Gifts) }
	cfg.Make = check
	cfg.Enforce = func(e *Edition) { offer(protocol.Catalogue{Gifts: e.Gifts, Version: e.Version}) }
	cfg.Changes = changes
	kept, err := edition.Open[Edition](ctx, cfg)
	return &Book{kept}, err
}

func check(e *Edition) error {
	if faults := protocol.CheckGifts(e.Gifts); len(faults) > 0 {
		return Faults(faults)
	}
	return nil
}

// changes says what leads from one catalogue to another; another order alone is one change of nothing.
func changes(before, after *Edition) int {
	after.Changes = edition.Diff(before.Gifts, after.Gifts, "id", func(id string) edition.Change { return edition.Change{Gift: id} })
	if n := len(after.Changes); n > 0 {
		return n
	}
	for i := range after.Gifts {
		if after.Gifts[i].ID != before.Gifts[i].ID {
			return 1
		}
	}
	return 0
}

// Publish puts gifts in force on top of version ifMatch, on all nodes. Errors: [Faults], [edition.ErrConflict], or the store's.
func (b *Book) Publish(ctx context.Context, gifts []protocol.CatalogueGift, author, note string, ifMatch uint64) (*Edition, error) {
	if err := b.kept.May(ifMatch); err != nil {
		return nil, err
	}
	e := &Edition{Story: edition.Story{Kind: edition.KindPublish, Author: author, Note: note}, Gifts: gifts}
	if err := check(e); err != nil {
		return nil, err
	}
	return b.kept.Publish(ctx, e, ifMatch)
}

// Rollback puts an older version in force again, as a new one on top of ifMatch (0: whatever is in force).
func (b *Book) Rollback(ctx context.Context, to, ifMatch uint64, author, note string) (*Edition, error) {
	return b.kept.Restore(ctx, to, ifMatch, author, note)
}

// History returns at most limit versions older than before (0: from the newest), newest first, each with its changes.
func (b *Book) History(ctx context.Context, before uint64, limit int) ([]*Edition, error) {
	return b.kept.History(ctx, before, limit)
}

// Current returns the catalogue in force on this node.
func (b *Book) Current() *Edition { return b.kept.Current() }

// Close ends the following; the catalogue in force stays in force.
func (b *Book) Close() { b.kept.Close() }
