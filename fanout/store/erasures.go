package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
	"liveroom/internal/lock"
	"liveroom/protocol"
)

// Erasures keep what is to be forgotten, and take it out of the logs.
//
// No log is sorted by user. So a room's part of a log is read, or all of it once for all that waits, in batches with a pause between them:
// what it costs is bounded by how much is kept, and not by how often somebody asks.
type Erasures struct{ *core }

// Erasure is what is to be forgotten: one message, or all that a user said within a time. It has no text.
type Erasure struct {
	Room  string `json:"room,omitempty"` // "": in all rooms
	User  string `json:"user,omitempty"`
	MID   string `json:"mid,omitempty"` // instead of a user
	From  int64  `json:"from"`          // of its admission, Unix ms
	Until int64  `json:"until"`
	At    int64  `json:"at"`             // Unix ms from when on it is to go from the logs
	Done  bool   `json:"done,omitempty"` // it went
	Node  string `json:"node,omitempty"` // that takes it out
}

const (
	erasuresMost  = 100_000
	erasuresBytes = 64 << 20
	// erasePause is between two batches of a log.
	erasePause = 5 * time.Millisecond
	eraseBatch = 1000
	// eraseSlack is how far clocks of nodes and of the store may be apart.
	eraseSlack = 2 * time.Minute
	// erasedKnown is how long it is known what was erased and went. Names are for as long as something may have them.
	erasedKnown = time.Hour
)

// erasuresAge is how long records may tell of a user after what was erased of them.
func (c Config) erasuresAge() time.Duration {
	return max(auditAge, c.GiftAge, c.Danmaku.Age) + 24*time.Hour
}

// erasures describes the stream. One that is full takes no more: the oldest keeps names from being shown again.
func erasures(c Config) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: link.ErasureStream, Subjects: []string{link.ErasurePrefix + "*"}, Storage: jetstream.FileStorage,
		MaxMsgsPerSubject: 1, MaxMsgs: erasuresMost, MaxBytes: erasuresBytes, MaxAge: c.erasuresAge(), Discard: jetstream.DiscardNew, Duplicates: time.Second,
		AllowMsgTTL: true, AllowDirect: true,
		RePublish: &jetstream.RePublish{Source: link.ErasurePrefix + "*", Destination: link.ErasureNewsPrefix + "{{wildcard(1)}}", HeadersOnly: true},
	}
}

// subject is the same for the same thing asked again.
func (e *Erasure) subject() string {
	sum := sha256.Sum256([]byte(e.Room + "\n" + e.User + "\n" + e.MID))
	return link.ErasurePrefix + base64.RawURLEncoding.EncodeToString(sum[:16])
}

// Erase tells all nodes, those to come included, to forget. It returns once that is stored: ErrUnknown when the store did not answer,
// ErrRefused when nothing was stored; the same may be said again.
func (x *Erasures) Erase(ctx context.Context, e Erasure) error {
	e.Node = x.cfg.NodeID
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	opts := []jetstream.PublishOpt{jetstream.WithExpectStream(link.ErasureStream)}
	if e.Done && !e.all() {
		opts = append(opts, jetstream.WithMsgTTL(erasedKnown))
	}
	if _, err = x.put(ctx, link.RoadErasure, &nats.Msg{Subject: e.subject(), Data: raw}, opts...); err != nil {
		return fmt.Errorf("erase: %w", err)
	}
	x.forgotten.note(&e)
	return nil
}

// all reports whether it is of all that a user did anywhere.
func (e *Erasure) all() bool { return e.Room == "" && e.MID == "" }

// ErasedUntil is until when all that a user did was erased, in Unix ms; 0: never, or so long ago that nothing tells of it.
func (x *Erasures) ErasedUntil(user string) int64 { return x.forgotten.of(user) }

// forgotten are the users of whom all was erased.
type forgotten struct {
	mu    lock.Mutex[lock.Leaf]
	until map[string]int64 // Unix ms
}

func (f *forgotten) note(e *Erasure) {
	if !e.all() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.until == nil {
		f.until = map[string]int64{}
	}
	f.until[e.User] = max(f.until[e.User], e.Until)
}

func (f *forgotten) of(user string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.until[user]
}

// none reports whether there are none.
func (f *forgotten) none() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.until) == 0
}

// told is what is told of a stored event, see [protocol.Forgotten].
func (c *core) told(event []byte) []byte {
	if c.forgotten.none() {
		return event
	}
	return protocol.Forgotten(event, c.forgotten.of)
}

// toldAll is told for what was read.
func (c *core) toldAll(got []link.Record, err error) ([]link.Record, error) {
	for i := range got {
		got[i].Data = c.told(got[i].Data)
	}
	return got, err
}

// FollowErasures calls take with everything that was to be forgotten, and then with what is, until stop is called. known tells that it was
// there before. The calls come one after the other. It returns when take has seen all that was stored.
func (x *Erasures) FollowErasures(ctx context.Context, take func(e Erasure, known bool)) (stop func(), err error) {
	known := true
	r := &link.Reader{Link: x.link, Stream: link.ErasureStream, Subject: link.ErasurePrefix + "*", Take: func(m link.Record) {
		var e Erasure
		if err := json.Unmarshal(m.Data, &e); err != nil {
			x.log.Warn("an erasure can't be read", "err", err)
			return
		}
		x.forgotten.note(&e)
		take(e, known)
	}}
	w := x.link.Follow(link.FollowErasures, r.Read)
	if err := w.Hear(link.ErasureNewsPrefix + "*"); err != nil {
		return nil, err
	}
	if err := w.LookOnce(ctx); err != nil {
		w.Forget()
		return nil, fmt.Errorf("read what is to be forgotten: %w", err)
	}
	known = false
	return w.Start(), nil
}

// TakeOut takes out of the logs what all of them name, which are of one room, or all of none, and returns how many records that were.
func (x *Erasures) TakeOut(ctx context.Context, all []Erasure) (n int, err error) {
	room, from := all[0].Room, all[0].From
	for _, e := range all {
		from = min(from, e.From)
	}
	start := time.UnixMilli(from).Add(-eraseSlack)
	said, recent, held := link.SaidPrefix+"*", link.AnyRoomSubject("*", protocol.ClassDanmaku.String()), link.HeldPrefix+"*.*"
	if room != "" {
		said, recent, held = link.SaidPrefix+protocol.Token(room), link.RoomSubject(room, protocol.ClassDanmaku.String()), link.HeldPrefix+protocol.Token(room)+".*"
	}
	logs := [][2]string{{link.EventsStream, said}, {link.HeldStream, held}, {link.LettersStream, link.LetterPrefix + "*.*"}}
	if !x.oneLog() {
		logs = append(logs, [2]string{link.RecentStream, recent})
	}
	for _, log := range logs {
		got, err := x.takeOut(ctx, log[0], log[1], start, all)
		if n += got; err != nil {
			return n, fmt.Errorf("erase from %s: %w", log[0], err)
		}
	}
	return n, nil
}

func (x *Erasures) takeOut(ctx context.Context, stream, subject string, start time.Time, all []Erasure) (n int, err error) {
	info, err := x.link.StreamInfo(ctx, stream)
	if err != nil {
		return 0, err
	}
	s, err := x.link.JS.Stream(ctx, stream)
	if err != nil {
		return 0, err
	}
	ask := link.Ask{Start: &start, Next: subject, Batch: eraseBatch}
	for {
		got, err := x.link.ReadSure(ctx, stream, ask)
		if err != nil || len(got) == 0 {
			return n, err
		}
		for _, r := range got {
			event := r.Data
			if stream == link.LettersStream {
				var kind string
				if event, kind = quoted(r.Data, all[0].Room); kind == "gift" { // what was paid is told
					continue
				}
			}
			if !names(all, event) {
				continue
			}
			err := s.SecureDeleteMsg(ctx, r.Seq)
			if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) && !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) { // another node was faster
				return n, err
			}
			n++
		}
		last := got[len(got)-1].Seq
		if last >= info.State.LastSeq { // what came since is no older than the asking
			return n, nil
		}
		ask = link.Ask{Seq: last + 1, Next: subject, Batch: eraseBatch}
		if !link.Rest(ctx, erasePause) {
			return n, ctx.Err()
		}
	}
}

var userField = []byte(`"user":{"id":`)

// names reports whether one of them names what a record tells.
func names(all []Erasure, record []byte) bool {
	if !bytes.Contains(record, userField) {
		return false
	}
	var said struct {
		MID  string `json:"mid"`
		TS   int64  `json:"ts"`
		User struct {
			ID string `json:"id"`
		} `json:"user"`
	}
	if json.Unmarshal(record, &said) != nil {
		return false
	}
	for i := range all {
		if all[i].Names(said.User.ID, said.MID, said.TS) {
			return true
		}
	}
	return false
}

// Names reports whether it is about a message, or about anything else that a user did at an instant.
func (e *Erasure) Names(user, mid string, ts int64) bool {
	if e.MID != "" {
		return mid == e.MID
	}
	return user == e.User && ts >= e.From && ts <= e.Until
}
