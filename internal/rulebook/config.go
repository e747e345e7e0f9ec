package rulebook

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"liveroom/internal/edition"
	"liveroom/limit"
)

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

// Store orders sets by version, and remembers what became of them.
type Store interface {
	edition.Store
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
	Metrics *edition.Metrics
}

var (
	// ErrFileSource says that the limits come from a file and are changed there.
	ErrFileSource = errors.New("limits come from the file on this server (limits.source is file)")
	// ErrNeedsOverride says that a change refuses so much more than today that its author must confirm it.
	ErrNeedsOverride = errors.New("the change refuses much more than today")
)
