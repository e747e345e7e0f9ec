package link

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// What a node follows because others decide it; a closed set, see [Link.Follows].
const (
	FollowCatalogue   = "catalogue"   // of gifts
	FollowErasures    = "erasures"    // what is to be forgotten
	FollowFilter      = "filter"      // the platform's list of words
	FollowHeld        = "held"        // messages that wait for staff
	FollowPresence    = "presence"    // who is there
	FollowRevocations = "revocations" // what is revoked
	FollowRooms       = "rooms"       // gifts and like totals of the rooms that have members here
	FollowRules       = "rules"       // sets of limits
	FollowSecrets     = "secrets"     // what the nodes agreed on
	FollowSettings    = "settings"    // of the rooms that have members here
)

// Followed lists them.
func Followed() []string {
	return []string{FollowCatalogue, FollowErasures, FollowFilter, FollowHeld, FollowPresence, FollowRevocations, FollowRooms, FollowRules, FollowSecrets, FollowSettings}
}

var errNotHeard = errors.New("fanout: not heard of since the connection was made or for too long")

// Follower keeps this node at what others decide of one kind. It looks in each period, soon after news, and soon after
// a connection came back, and it stands while its last complete look is of the present connections and not older than its patience.
// A watch that only listens cannot tell silence from deafness.
type Follower struct {
	News Wake // asks for a look

	l        *Link
	name     string
	every    time.Duration
	patience time.Duration
	gap      time.Duration               // between two looks, however much news there is
	look     func(context.Context) error // nil: told by Heard
	sub      *nats.Subscription          // of the news; nil: none
	last     atomic.Pointer[looked]      // the last complete look, nil before the first
}

// looked is when a look began, and over which connections: each loss and each return of one makes the number another one.
type looked struct {
	connections uint64
	at          time.Time
}

// lookAgain is the pause after a look that failed.
const lookAgain = Pause

// FollowEach adds a follower; its owner runs it, when there is something to run.
func (l *Link) FollowEach(name string, every, patience time.Duration, look func(context.Context) error) *Follower {
	w := &Follower{l: l, name: name, every: every, patience: patience, gap: min(Pause, every/20), look: look, News: NewWake()}
	l.mu.Lock()
	l.followers[name] = w
	l.mu.Unlock()
	return w
}

// Follow follows with the period and patience of what must be everywhere within two seconds.
func (l *Link) Follow(name string, look func(context.Context) error) *Follower {
	return l.FollowEach(name, l.cfg.FollowEvery, max(l.cfg.ProbeTimeout, 3*l.cfg.FollowEvery), look)
}

// Run looks until ctx ends.
func (w *Follower) Run(ctx context.Context) {
	lost := false
	for {
		pause, next := w.every, time.After(w.gap)
		switch err := w.LookOnce(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = min(pause, lookAgain)
			if !lost {
				w.l.Log.Warn("not followed for now", "what", w.name, "err", err)
			}
			lost = true
		case lost:
			w.l.Log.Info("followed again", "what", w.name)
			lost = false
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		case <-w.News:
			select {
			case <-ctx.Done():
				return
			case <-next:
			}
		}
	}
}

// LookOnce looks now. It is for the owner, before it calls Run.
func (w *Follower) LookOnce(ctx context.Context) error {
	began := looked{w.l.connections.Load(), time.Now()}
	if !w.l.Connected() {
		return ErrDisconnected
	}
	if err := w.look(ctx); err != nil {
		return err
	}
	w.last.Store(&began)
	return nil
}

// Heard is for what is not looked for but comes by itself.
func (w *Follower) Heard() {
	w.last.Store(&looked{w.l.connections.Load(), time.Now()})
	w.News.Soon()
}

func (w *Follower) stands(now time.Time) bool {
	last := w.last.Load()
	return last != nil && last.connections == w.l.connections.Load() && now.Sub(last.at) <= w.patience
}

// Follows returns nil when this node knows what was decided elsewhere of one of [Followed] until a moment ago, and also
// when it does not follow it at all. It does not wait.
func (l *Link) Follows(name string) error {
	l.mu.Lock()
	w := l.followers[name]
	l.mu.Unlock()
	if w == nil || w.stands(time.Now()) {
		return nil
	}
	return fmt.Errorf("%w: %s", errNotHeard, name)
}

// Hear makes each message on the subject news.
func (w *Follower) Hear(subject string) (err error) {
	if w.sub, err = w.l.Live.Subscribe(subject, func(*nats.Msg) { w.News.Soon() }); err != nil {
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	return nil
}

// Start runs the follower until stop is called; it is not followed any more then.
func (w *Follower) Start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var loop sync.WaitGroup
	loop.Go(func() { w.Run(ctx) })
	return func() {
		cancel()
		loop.Wait()
		w.Forget()
	}
}

// Forget ends the following of a follower that does not run.
func (w *Follower) Forget() {
	_ = w.sub.Unsubscribe() // fails only on a closed connection, where there is nothing to undo
	w.l.mu.Lock()
	delete(w.l.followers, w.name)
	w.l.mu.Unlock()
}

// Reader reads what is new in a stream, each message once and in order, and all again when the stream is another one or an
// older copy of itself, whose next messages would be taken for known ones. Owned by one follower's loop.
type Reader struct {
	Link            *Link
	Stream, Subject string
	Newest          bool // what a later message replaces is skipped
	Take            func(Record)

	made  time.Time // the stream was, nil before the first reading
	known uint64
}

// Begin takes all that is there for known.
func (r *Reader) Begin(ctx context.Context) error {
	info, err := r.Link.StreamInfo(ctx, r.Stream)
	if err == nil {
		r.made, r.known = info.Created, info.State.LastSeq
	}
	return err
}

// Read takes what is new.
func (r *Reader) Read(ctx context.Context) error {
	info, err := r.Link.StreamInfo(ctx, r.Stream)
	if err != nil {
		return err
	}
	last := info.State.LastSeq
	if !info.Created.Equal(r.made) || last < r.known {
		r.made, r.known = info.Created, 0
	}
	if r.Newest && last > r.known {
		got, ok, err := r.Link.LeaderGet(ctx, r.Stream, Ask{Last: r.Subject})
		if err != nil {
			return err
		}
		if ok && got.Seq > r.known {
			r.Take(got)
		}
		r.known = max(last, got.Seq) // it may have come since
	}
	for r.known < last {
		if err := r.readOn(ctx, last); err != nil {
			return err
		}
	}
	return nil
}

// readBatch is how many messages one read brings.
const readBatch = 256

// readOn takes the next messages, at least one, or finds that there are no more.
func (r *Reader) readOn(ctx context.Context, last uint64) error {
	got, err := r.Link.ReadSure(ctx, r.Stream, Ask{Seq: r.known + 1, Next: r.Subject, Batch: readBatch})
	if err != nil {
		return err
	}
	if len(got) == 0 {
		r.known = last
	}
	for _, m := range got {
		r.Take(m)
		r.known = m.Seq
	}
	return nil
}
