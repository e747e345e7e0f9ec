package rulebook

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"liveroom/limit"
)

// Record is a set as a [Store] keeps it.
type Record struct {
	Version uint64
	Payload []byte
	Time    time.Time
	Node    string // that published it, "" when unknown
}

// Ending is how the watch over a version ended, as the node that watched saw it. Shares are of the users it saw.
type Ending struct {
	Version     uint64    `json:"version"`
	End         string    `json:"end"` // kept, rolled_back, superseded or unjudged
	Node        string    `json:"node"`
	At          time.Time `json:"at"`
	Users       int64     `json:"users"`
	Refused     int64     `json:"refused"`
	WouldRefuse int64     `json:"would_refuse"`
	Why         string    `json:"why,omitempty"`
}

// Store orders sets by version.
type Store interface {
	// Publish stores payload if the newest version is still after (0: none) and returns the new one; an error that is
	// [ErrConflict] when it is not.
	Publish(ctx context.Context, payload []byte, after uint64) (version uint64, err error)
	// History returns at most limit records older than version before (0: from the newest), newest first.
	History(ctx context.Context, before uint64, limit int) ([]Record, error)
	// Follow calls h with the newest record, at first and at each change, one call after the other, until stop.
	Follow(h func(Record)) (stop func(), err error)
	// Ended keeps how the watch over a version ended.
	Ended(ctx context.Context, e Ending) error
	// Endings returns what was kept of that, newest first.
	Endings(ctx context.Context) ([]Ending, error)
}

// Review is what a server has to say about a change of its limits, in the order of a change's life.
type Review interface {
	// Check finds what is wrong with rules that compile but make no sense on this server.
	Check(rules []limit.Rule) limit.Faults
	// Judge says whether a change may be published without override: nil, or an error that is [ErrNeedsOverride].
	Judge(ctx context.Context, today, proposed *limit.Rules) error
	// Published is told that a set which this node itself published is in force here.
	Published(ctx context.Context)
}

// noReview has nothing to say.
type noReview struct{}

func (noReview) Check([]limit.Rule) limit.Faults                         { return nil }
func (noReview) Judge(context.Context, *limit.Rules, *limit.Rules) error { return nil }
func (noReview) Published(context.Context)                               {}

// Config configures a [Book].
type Config struct {
	// Gate is where sets are put in force. Required.
	Gate *limit.Gate
	// Store is the authority of the source "cluster". Nil: the source is the file.
	Store Store
	// Seed is the configuration's set: it fills an empty store, and is in force until the store has answered.
	Seed *limit.Spec
	// File is looked at every FileEvery when there is no store. Empty: the seed stays.
	File string
	// FileEvery defaults to 900 ms, so that a change is in force within a second.
	FileEvery time.Duration
	// Keep is the path of the copy of the last good set. Empty: none is kept.
	Keep string
	// Review has a say in each change. Nil: all may be published.
	Review Review
	// Node is this node's id, as the store will name it with what is published here.
	Node string
	// Log takes what an operator should read. Required.
	Log *slog.Logger
	// Metrics counts. Nil: counted for nobody.
	Metrics *Metrics
}

var (
	// ErrConflict says that the limits are not at the version that the author saw.
	ErrConflict = errors.New("limits were changed meanwhile")
	// ErrFileSource says that the limits come from a file and are changed there.
	ErrFileSource = errors.New("limits come from the file on this server (limits.source is file)")
	// ErrNeedsOverride says that a change refuses so much more than today that its author must confirm it.
	ErrNeedsOverride = errors.New("the change refuses much more than today")
	// ErrNotFound says that there is no such version, or that it can't be read by this server.
	ErrNotFound = errors.New("no such version of the limits")
)
