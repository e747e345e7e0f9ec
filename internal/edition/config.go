package edition

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
)

// Store orders editions by version.
type Store interface {
	// Publish stores payload if the newest version is still after (0: none) and returns the new one; an error that is
	// [ErrConflict] when it is not.
	Publish(ctx context.Context, payload []byte, after uint64) (version uint64, err error)
	// History returns at most limit records older than version before (0: from the newest), newest first.
	History(ctx context.Context, before uint64, limit int) ([]Record, error)
	// Follow calls h with the newest record, at first and at each change, one call after the other, until stop.
	Follow(h func(Record)) (stop func(), err error)
}

// Config configures a [Keeper] of editions of type E.
type Config[E any] struct {
	// Name begins all lines of the log.
	Name string
	// Store is the authority. Nil: only [Keeper.Put] brings editions.
	Store Store
	// Seed is the configuration's: it fills an empty store, and is in force until the store has answered.
	Seed *E
	// Reseed lets the configuration's replace a seed that is in force: it is the source until somebody publishes.
	Reseed bool
	// Key names the content in what is stored.
	Key string
	// Content returns what is stored of an edition.
	Content func(*E) any
	// Decode reads what Content returned.
	Decode func(json.RawMessage, *E) error
	// Make makes ready what is to be put in force. It is called once for each edition.
	Make func(*E) error
	// Enforce puts e in force. It must not block.
	Enforce func(e *E)
	// Changes says what leads from one edition to another, and writes it to the latter where it is told of. It returns how much that is.
	Changes func(before, after *E) int
	// Keep is the path of the copy of the last good edition. Empty: none is kept.
	Keep string
	// Node is this node's id, as the store will name it with what is published here.
	Node string
	// Log takes what an operator should read. Required.
	Log *slog.Logger
	// Metrics counts. Nil: counted for nobody.
	Metrics *Metrics
}

var (
	// ErrConflict says that another version is in force than the author saw.
	ErrConflict = errors.New("changed meanwhile")
	// ErrNotFound says that there is no such version, or that it can't be read by this server.
	ErrNotFound = errors.New("no such version")
	// ErrNoStore says that there is none to publish to.
	ErrNoStore = errors.New("not kept in the store")
)
