package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// What a node follows because others decide it; a closed set, see [Fabric.Follows].
const (
	FollowPresence    = "presence"    // who is there
	FollowRevocations = "revocations" // what is revoked
	FollowRooms       = "rooms"       // gifts and like totals of the rooms that have members here
	FollowRules       = "rules"       // sets of limits
	FollowSecrets     = "secrets"     // what the nodes agreed on
	FollowSettings    = "settings"    // of the rooms that have members here
)

// Followed lists them.
func Followed() []string {
	return []string{FollowPresence, FollowRevocations, FollowRooms, FollowRules, FollowSecrets, FollowSettings}
}

var (
	errNotHeard = errors.New("fanout: not heard of since the connection was made or for too long")
	errBehind   = errors.New("fanout: rooms have not caught up yet")
)

// follower keeps this node at what others decide of one kind. It looks in each period, soon after news, and soon after
// a connection came back, and it stands while its last complete look is of the present connections and not older than its patience.
// A watch that only listens cannot tell silence from deafness.
type follower struct {
	f        *Fabric
	name     string
	every    time.Duration
	patience time.Duration
	gap      time.Duration               // between two looks, however much news there is
	look     func(context.Context) error // nil: told by heard
	news     wake
	last     atomic.Pointer[looked] // the last complete look, nil before the first
}

// looked is when a look began, and over which connections: each loss and each return of one makes the number another one.
type looked struct {
	connections uint64
	at          time.Time
}

// lookAgain is the pause after a look that failed.
const lookAgain = loopPause

// follow adds a follower; its owner runs it, when there is something to run.
func (f *Fabric) follow(name string, every, patience time.Duration, look func(context.Context) error) *follower {
	w := &follower{f: f, name: name, every: every, patience: patience, gap: min(loopPause, every/20), look: look, news: newWake()}
	f.mu.Lock()
	f.followers[name] = w
	f.mu.Unlock()
	return w
}

// lookOften follows with the period and patience of what must be everywhere within two seconds.
func (f *Fabric) lookOften(name string, look func(context.Context) error) *follower {
	return f.follow(name, f.cfg.FollowEvery, max(f.cfg.ProbeTimeout, 3*f.cfg.FollowEvery), look)
}

func (w *follower) run(ctx context.Context) {
	lost := false
	for {
		pause, next := w.every, time.After(w.gap)
		switch err := w.lookOnce(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = min(pause, lookAgain)
			if !lost {
				w.f.log.Warn("not followed for now", "what", w.name, "err", err)
			}
			lost = true
		case lost:
			w.f.log.Info("followed again", "what", w.name)
			lost = false
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		case <-w.news:
			select {
			case <-ctx.Done():
				return
			case <-next:
			}
		}
	}
}

func (w *follower) lookOnce(ctx context.Context) error {
	began := looked{w.f.connections.Load(), time.Now()}
	if !w.f.connected() {
		return ErrDisconnected
	}
	if err := w.look(ctx); err != nil {
		return err
	}
	w.last.Store(&began)
	return nil
}

// heard is for what is not looked for but comes by itself.
func (w *follower) heard() {
	w.last.Store(&looked{w.f.connections.Load(), time.Now()})
	w.news.soon()
}

func (w *follower) stands(now time.Time) bool {
	last := w.last.Load()
	return last != nil && last.connections == w.f.connections.Load() && now.Sub(last.at) <= w.patience
}

// Follows returns nil when this node knows what was decided elsewhere of one of [Followed] until a moment ago, and also
// when it does not follow it at all. It does not wait.
func (f *Fabric) Follows(name string) error {
	f.mu.Lock()
	w := f.followers[name]
	f.mu.Unlock()
	if w == nil || w.stands(time.Now()) {
		return nil
	}
	return fmt.Errorf("%w: %s", errNotHeard, name)
}

// connectionChanged makes all followers look anew. For connections that were lost or came back.
func (f *Fabric) connectionChanged() {
	f.connections.Add(1)
	f.changed.Store(int64(time.Since(f.roads.began)))
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.followers {
		w.news.soon()
	}
	f.roads.soon.soon()
}

// reader reads what is new in a stream, each message once and in order, and all again when the stream is another one or an
// older copy of itself, whose next messages would be taken for known ones. Owned by one follower's loop.
type reader struct {
	f               *Fabric
	stream, subject string
	newest          bool // what a later message replaces is skipped
	take            func(record)

	made  time.Time // the stream was, nil before the first reading
	known uint64
}

// begin takes all that is there for known.
func (r *reader) begin(ctx context.Context) error {
	info, err := r.f.streamInfo(ctx, r.stream)
	if err == nil {
		r.made, r.known = info.Created, info.State.LastSeq
	}
	return err
}

func (r *reader) read(ctx context.Context) error {
	info, err := r.f.streamInfo(ctx, r.stream)
	if err != nil {
		return err
	}
	last := info.State.LastSeq
	if !info.Created.Equal(r.made) || last < r.known {
		r.made, r.known = info.Created, 0
	}
	if r.newest && last > r.known {
		got, ok, err := r.f.leaderGet(ctx, r.stream, leaderGet{Last: r.subject})
		if err != nil {
			return err
		}
		if ok && got.Seq > r.known {
			r.take(got)
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

// readOn takes the next messages, at least one, or finds that there are no more. A replica may lag behind the leader, and
// says "nothing" then; only the leader's word counts for that.
func (r *reader) readOn(ctx context.Context, last uint64) error {
	got, err := r.f.read(ctx, r.stream, directGet{Seq: r.known + 1, Next: r.subject, Batch: readBatch})
	if err != nil {
		return err
	}
	if len(got) == 0 {
		next, ok, err := r.f.leaderGet(ctx, r.stream, leaderGet{Seq: r.known + 1, Next: r.subject})
		if err != nil {
			return err
		}
		if !ok {
			r.known = last
			return nil
		}
		got = append(got, next)
	}
	for _, m := range got {
		r.take(m)
		r.known = m.Seq
	}
	return nil
}

// streamInfo is the leader's word.
func (f *Fabric) streamInfo(ctx context.Context, stream string) (*jetstream.StreamInfo, error) {
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	s, err := f.js.Stream(ctx, stream)
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", stream, err)
	}
	return s.CachedInfo(), nil
}

// storeNow is the clock of a stream's leader, by which ages of what it stored are told: this node's may be another one.
func (f *Fabric) storeNow(ctx context.Context, stream string) (time.Time, error) {
	info, err := f.streamInfo(ctx, stream)
	if err != nil {
		return time.Time{}, err
	}
	return info.TimeStamp, nil
}

// leaderGet asks a stream's leader for one message.
type leaderGet struct {
	Seq  uint64 `json:"seq,omitempty"`
	Next string `json:"next_by_subj,omitempty"`
	Last string `json:"last_by_subj,omitempty"`
}

// leaderGet returns the message, false when there is none. What other replicas answer may be older than what somebody was
// shown.
func (f *Fabric) leaderGet(ctx context.Context, stream string, req leaderGet) (record, bool, error) {
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	body, err := json.Marshal(req)
	if err != nil {
		return record{}, false, err
	}
	answer, err := f.store.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, body)
	if err != nil {
		return record{}, false, fmt.Errorf("read %s: %w", stream, err)
	}
	var got struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(answer.Data, &got); err != nil {
		return record{}, false, fmt.Errorf("read %s: %w", stream, err)
	}
	switch m := got.Message; {
	case got.Error == nil:
		r := record{Subject: m.Subject, Seq: m.Seq, Time: m.Time, Data: m.Data}
		if len(m.Header) > 0 {
			header, err := nats.DecodeHeadersMsg(m.Header)
			if err != nil {
				return record{}, false, fmt.Errorf("read %s: %w", stream, err)
			}
			r.Origin, r.Node, r.Paid = originOf(header), header.Get(nodeHeader), paymentOf(header)
		}
		return r, true, nil
	case got.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return record{}, false, nil
	default:
		return record{}, false, fmt.Errorf("read %s: %w", stream, got.Error)
	}
}

// start runs the follower that sub brings news to, until stop is called; it is not followed any more then.
func (w *follower) start(sub *nats.Subscription) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.run(ctx)
	}()
	return func() {
		_ = sub.Unsubscribe() // fails only on a closed connection, where there is nothing to undo
		cancel()
		<-ended
		w.f.mu.Lock()
		delete(w.f.followers, w.name)
		w.f.mu.Unlock()
	}
}
