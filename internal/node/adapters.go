package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"liveroom/fanout"
	"liveroom/fanout/feed"
	"liveroom/fanout/link"
	"liveroom/fanout/store"
	"liveroom/internal/api"
	"liveroom/internal/edition"
	"liveroom/internal/rulebook"
	"liveroom/protocol"
	"liveroom/room"
)

// bus lets rooms speak to the fabric's parts: the same calls, with the errors of the one turned into those of the other.
type bus struct {
	*feed.Feeds
	*store.Ledger
	*store.LikeTotals
	*store.RoomSettings
	*store.AuditLog
	*store.RecentLog
	*store.Journal
	*store.Held
	erasures *store.Erasures
	*store.Shows
}

var _ room.Bus = bus{}

func newBus(f *fanout.Fabric) bus {
	return bus{f.Feeds, f.Store.Gifts, f.Store.Likes, f.Store.Settings, f.Store.Audit, f.Store.Recent, f.Store.Journal, f.Store.Held, f.Store.Erasures, f.Store.Shows}
}

// Subscribe implements [room.Publisher].
func (b bus) Subscribe(ctx context.Context, id string, to room.Feed) (o room.Opening, stop func(), err error) {
	sub, err := b.Feeds.Subscribe(ctx, id, to)
	if err != nil {
		return o, nil, err
	}
	return room.Opening(sub.Opening()), sub.Close, nil
}

// Erase implements [room.Eraser].
func (b bus) Erase(ctx context.Context, e room.Erasure) error {
	return busError(b.erasures.Erase(ctx, store.Erasure(e)))
}

// ErasedUntil implements [room.Eraser].
func (b bus) ErasedUntil(user string) int64 { return b.erasures.ErasedUntil(user) }

// Publish implements [room.Publisher].
func (b bus) Publish(c protocol.Class, id string, message []byte) error {
	return busError(b.Feeds.Publish(c, id, message))
}

// StoreGift implements [room.Ledger].
func (b bus) StoreGift(ctx context.Context, id, user, request string, event []byte, within time.Duration, done func(protocol.Receipt, error)) {
	b.BeginGift(ctx, id, user, request, event, within, func(r protocol.Receipt, err error) { done(r, busError(err)) })
}

// PutSettings implements [room.SettingsStore].
func (b bus) PutSettings(ctx context.Context, id string, value []byte, revision uint64) (uint64, error) {
	next, err := b.RoomSettings.PutSettings(ctx, id, value, revision)
	return next, busError(err)
}

// PutAct implements [room.SettingsStore].
func (b bus) PutAct(ctx context.Context, id string, value []byte, last uint64, alone bool) (uint64, error) {
	seq, err := b.RoomSettings.PutAct(ctx, id, value, last, alone)
	return seq, busError(err)
}

// Note implements [room.Noter].
func (b bus) Note(id string, event []byte) error { return busError(b.Journal.Note(id, event)) }

// PutHeld implements [room.HeldStore].
func (b bus) PutHeld(ctx context.Context, id, mid string, value []byte, last uint64, done bool) (uint64, error) {
	seq, err := b.Held.PutHeld(ctx, id, mid, value, last, done)
	return seq, busError(err)
}

// PutShow implements [room.ShowBook].
func (b bus) PutShow(ctx context.Context, id string, record []byte, revision uint64) (uint64, error) {
	next, err := b.Shows.PutShow(ctx, id, record, revision)
	return next, busError(err)
}

// auditTrail lets the API read what the fabric keeps.
type auditTrail struct{ *store.AuditLog }

var _ api.Audit = auditTrail{}

// AuditOf implements [api.Audit].
func (t auditTrail) AuditOf(ctx context.Context, id string, before uint64, limit int) (out api.AuditPage, err error) {
	kept, err := t.AuditLog.AuditOf(ctx, id, before, limit)
	if kept.Dropped > 0 {
		out.Dropped, out.Since = kept.Dropped, kept.Since.UnixMilli()
	}
	for _, k := range kept.Records {
		out.Entries = append(out.Entries, api.Audited{Seq: k.Seq, Entry: k.Entry})
	}
	return out, err
}

// heldQueue lets the API read what waits for staff.
type heldQueue struct{ *store.Held }

var _ api.Held = heldQueue{}

// HeldOf implements [api.Held].
func (q heldQueue) HeldOf(ctx context.Context, id string, after uint64, limit int) ([]api.HeldRecord, error) {
	kept, err := q.Held.HeldOf(ctx, id, after, limit)
	out := make([]api.HeldRecord, len(kept))
	for i, k := range kept {
		out[i] = api.HeldRecord{Seq: k.Seq, Value: k.Value}
	}
	return out, err
}

func busError(err error) error {
	switch {
	case errors.Is(err, link.ErrForbidden):
		return fmt.Errorf("%w: %w: %w", room.ErrRefused, room.ErrForbidden, err)
	case errors.Is(err, link.ErrRefused), errors.Is(err, link.ErrDisconnected), errors.Is(err, link.ErrClosed):
		return fmt.Errorf("%w: %w", room.ErrRefused, err)
	case errors.Is(err, store.ErrConflict):
		return fmt.Errorf("%w: %w", room.ErrConflict, err)
	}
	return err
}

// editions lets a keeper have its editions in the fabric.
type editions struct{ kept *store.Editions }

var _ edition.Store = editions{}

// Publish implements [edition.Store].
func (e editions) Publish(ctx context.Context, payload []byte, after uint64) (uint64, error) {
	version, err := e.kept.Publish(ctx, payload, after)
	if errors.Is(err, store.ErrConflict) {
		return 0, fmt.Errorf("%w: %w", edition.ErrConflict, err)
	}
	return version, err
}

// History implements [edition.Store].
func (e editions) History(ctx context.Context, before uint64, limit int) ([]edition.Record, error) {
	stored, err := e.kept.History(ctx, before, limit)
	records := make([]edition.Record, len(stored))
	for i, r := range stored {
		records[i] = edition.Record(r)
	}
	return records, err
}

// Follow implements [edition.Store].
func (e editions) Follow(h func(edition.Record)) (stop func(), err error) {
	return e.kept.Follow(func(r store.Edition) { h(edition.Record(r)) })
}

// ruleStore lets the rule book keep its sets in the fabric.
type ruleStore struct {
	editions
	*store.AuditLog
}

var _ rulebook.Store = ruleStore{}

// watchedLimits stands for the limits in the audit. It is no room's id.
const watchedLimits = "limits/watched"

// mostEndings is how many of them are read: the store keeps so many versions.
const mostEndings = 1000

// Ended implements [rulebook.Store].
func (s ruleStore) Ended(ctx context.Context, e rulebook.Ending) error {
	entry, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = s.Audit(ctx, watchedLimits, entry)
	return err
}

// Endings implements [rulebook.Store].
func (s ruleStore) Endings(ctx context.Context) ([]rulebook.Ending, error) {
	kept, err := s.AuditOf(ctx, watchedLimits, 0, mostEndings)
	var out []rulebook.Ending
	for _, k := range kept.Records {
		var e rulebook.Ending
		if json.Unmarshal(k.Entry, &e) == nil { // what a later version writes may be another thing
			out = append(out, e)
		}
	}
	return out, err
}
