package filter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/flate"

	"liveroom/internal/edition"
	"liveroom/protocol"
)

// Edition is one version of the platform's list.
type Edition struct {
	edition.Story
	protocol.WordList
	Count   int      `json:"count"`             // of words
	Changes *Changes `json:"changes,omitempty"` // against the version before; only in a history

	set *Set
}

// Changes are what leads from one list to another.
type Changes struct {
	Added   int      `json:"added"`   // a word with another action is added and removed
	Removed int      `json:"removed"` //
	Options bool     `json:"options"` // traditional or pinyin
	Some    []string `json:"some"`    // of these words
}

// maxStored bounds a list as it is stored, which the store takes whole: NATS lets a message have a megabyte.
const maxStored = 900 << 10

// stored is a list as it is kept: fifty thousand words are some 300 KB so.
type stored struct {
	Deflated []byte `json:"deflated"` // a WordList
}

// Book is one node's view of the platform's list.
type Book struct {
	kept *edition.Keeper[Edition, *Edition]
}

// Open puts the newest list in force by offer, which must not block, and follows it from then on. Of cfg it takes Store, Keep, Node, Log and
// Metrics. ctx bounds the opening alone.
func Open(ctx context.Context, cfg edition.Config[Edition], offer func(*Set)) (*Book, error) {
	cfg.Name, cfg.Key = "filter", "list"
	cfg.Seed = &Edition{Story: edition.Story{Kind: edition.KindSeed, Author: "configuration", Time: time.Now().UTC()}, WordList: protocol.WordList{Words: []protocol.Word{}}}
	cfg.Content = func(e *Edition) any { return pack(&e.WordList) }
	cfg.Decode = unpack
	cfg.Make = ready
	cfg.Enforce = func(e *Edition) { offer(e.set) }
	cfg.Changes = changes
	kept, err := edition.Open[Edition](ctx, cfg)
	return &Book{kept}, err
}

func pack(l *protocol.WordList) stored {
	raw, _ := json.Marshal(l) // what was decoded encodes
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestSpeed) // the level is one
	_, _ = w.Write(raw)                          // to memory
	_ = w.Close()
	return stored{b.Bytes()}
}

func unpack(raw json.RawMessage, e *Edition) error {
	var s stored
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	list, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(s.Deflated)), 64*PlatformBytes))
	if err != nil {
		return fmt.Errorf("list of words: %w", err)
	}
	if err := json.Unmarshal(list, &e.WordList); err != nil {
		return err
	}
	e.Count = len(e.Words)
	return nil
}

// ready compiles a list, once on its way into force.
func ready(e *Edition) error {
	if e.Words == nil {
		e.Words = []protocol.Word{}
	}
	e.Count = len(e.Words)
	set, err := Compile(&e.WordList, PlatformWords, PlatformBytes)
	if err != nil {
		return err
	}
	e.set = set
	if n := len(pack(&e.WordList).Deflated) * 4 / 3; n > maxStored {
		return protocol.BadField("words", fmt.Sprintf("a list that takes %d bytes where it is stored", maxStored), fmt.Sprint(n))
	}
	return nil
}

// changes says what leads from one list to another.
func changes(before, after *Edition) int {
	const some = 20
	was := make(map[protocol.Word]bool, len(before.Words))
	for _, w := range before.Words {
		was[w] = true
	}
	c := &Changes{Options: before.Traditional != after.Traditional || before.Pinyin != after.Pinyin, Some: []string{}}
	note := func(sign string, w protocol.Word) {
		if len(c.Some) < some {
			c.Some = append(c.Some, sign+w.Word)
		}
	}
	for _, w := range after.Words {
		if was[w] {
			delete(was, w)
			continue
		}
		c.Added++
		note("+", w)
	}
	for _, w := range before.Words {
		if was[w] {
			delete(was, w)
			c.Removed++
			note("-", w)
		}
	}
	after.Changes = c
	n := c.Added + c.Removed
	if c.Options {
		n++
	}
	return n
}

// Publish puts a list in force on top of version ifMatch, on all nodes. Errors: a *[protocol.Error] that says what is wrong with it,
// [edition.ErrConflict], or the store's.
func (b *Book) Publish(ctx context.Context, list protocol.WordList, author, note string, ifMatch uint64) (*Edition, error) {
	if err := b.kept.May(ifMatch); err != nil {
		return nil, err
	}
	e := &Edition{Story: edition.Story{Kind: edition.KindPublish, Author: author, Note: note}, WordList: list}
	if err := ready(e); err != nil {
		return nil, err
	}
	return b.kept.Publish(ctx, e, ifMatch)
}

// Rollback puts an older version in force again, as a new one on top of ifMatch (0: whatever is in force).
func (b *Book) Rollback(ctx context.Context, to, ifMatch uint64, author, note string) (*Edition, error) {
	return b.kept.Restore(ctx, to, ifMatch, author, note)
}

// History returns at most limit versions older than before (0: from the newest), newest first, without their words, each with its changes.
func (b *Book) History(ctx context.Context, before uint64, limit int) ([]*Edition, error) {
	all, err := b.kept.History(ctx, before, limit)
	out := make([]*Edition, len(all))
	for i, e := range all {
		told := *e // what is in force keeps its words
		told.Words = nil
		out[i] = &told
	}
	return out, err
}

// Current returns the list in force on this node.
func (b *Book) Current() *Edition { return b.kept.Current() }

// Close ends the following; the list in force stays in force.
func (b *Book) Close() { b.kept.Close() }
