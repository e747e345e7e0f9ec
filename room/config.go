package room

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"liveroom/internal/trace"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room/audience"
)

// Config configures a [Hub]. Zero fields take the defaults that are named with them.
type Config struct {
	// Bus carries the rooms' traffic and keeps what outlives this node. Required.
	Bus Bus
	// Gate decides over buckets; its clock is also the one of ticks and memories, so it must run with the runtime's
	// timers. Required.
	Gate *limit.Gate
	// Verify reads a token for a room when a member refreshes its own. Nil: refresh is refused.
	Verify func(room, token string) (Identity, *protocol.Error)
	// Allowances returns what a welcome says about limits, by action. Nil: nothing is said.
	Allowances func(room string, role protocol.Role) map[string]protocol.Allowance
	// Elsewhere returns who is in a room on other nodes, asked every SweepEvery. Nil: nobody is.
	Elsewhere func(room string) Others
	// Storing returns nil while likes can be stored; with an error they are refused with try_later. It must not block. Nil: always.
	Storing func() error
	// Lag returns how late this node comes to what viewers send, measured lately. It is asked 40 times a second and must
	// not block. Nil: the node is never behind.
	Lag func() time.Duration
	// Behind is the lag above which the node gives things up step by step. Default 40 ms.
	Behind time.Duration
	// Shed counts a message that was refused because the node is behind. Nil: nobody counts.
	Shed func(protocol.Class)
	// Gifts is the catalogue until [Hub.Offer] brings another. A gift outside it is not_found.
	Gifts []protocol.CatalogueGift
	// EventTypes are the types that custom events may have. None: there are no custom events.
	EventTypes []string
	// Everywhere brings a message to [Hub.Heard] of every node, this one included, and returns nil once all have it. Nil: this node is
	// the only one.
	Everywhere func(ctx context.Context, message []byte) error
	// NoteSessions keeps who joined and left for back ends, besides how many. NoDanmaku keeps none of the danmaku that only their
	// senders are shown.
	NoteSessions, NoDanmaku bool
	// Node names this node in welcomes.
	Node string

	// Now is the wall clock of ts, mutes and tokens. Default: time.Now.
	Now func() time.Time
	// MIDs hands out message ids. Default: protocol.NewMIDs().
	MIDs *protocol.MIDs
	// Log takes what an operator should read. Default: discarded.
	Log *slog.Logger
	// Metrics counts. Default: counted for nobody.
	Metrics *Metrics
	// Trace is of gifts on their way into the ledger. Default: nobody sees it.
	Trace *trace.Tracer

	// AutoCreate lets a join make a room that nobody has seen before.
	AutoCreate bool
	// Followed is the attribute that says since when a user follows, in Unix seconds. Default: none, and no room can be for followers.
	Followed string
	// Account is the attribute that says when a user's account was made, in Unix seconds, by which shields tell newcomers. Default: none, and they
	// go by when somebody came into the room.
	Account string
	// MarkKey is the nodes' secret by which networks and devices of banned guests are hashed. Nil: made for this hub alone.
	MarkKey []byte
	// GiftsBy says who pays for gifts. Default protocol.GiftsByBackend.
	GiftsBy protocol.GiftAuthority
	// Till has gifts paid for. Required where GiftsBy is protocol.GiftsByHook, and not asked elsewhere.
	Till Till
	// JoinHook is asked who may come in. Nil: nobody is asked.
	JoinHook JoinHook
	// DanmakuHook is asked about each danmaku of a socket before it is shown. Nil: nobody is asked.
	DanmakuHook DanmakuHook
	// MaxRooms bounds the rooms of this node, idle ones included. Default 20,000.
	MaxRooms int
	// MaxUsers bounds the users of this node, those whose buckets are not full again included. Default 250,000.
	MaxUsers int
	// MaxText is the longest danmaku in grapheme clusters. Default protocol.MaxTextGraphemes.
	MaxText int

	// Audience says how rooms show what they show.
	Audience audience.Config
	// AnswersKept bounds the answers remembered per user. Default 64.
	AnswersKept int
	// ResumeGifts is how many missed gifts a resuming client is sent at most. Default 500.
	ResumeGifts int
	// GiftTimeout bounds the wait for the ledger. Default 3 s.
	GiftTimeout time.Duration
	// Heartbeat is told in the welcome. Default 25 s.
	Heartbeat time.Duration
	// RoomIdle is how long a room without members stays at least. Default 10 s.
	RoomIdle time.Duration
	// SweepEvery is how often idle rooms and users are looked at. Default 1 s.
	SweepEvery time.Duration
}

// What nobody has had to set.
const (
	repeatWithin = 5 * time.Second  // how long a user may not say the same again in a room
	comboWithin  = 5 * time.Second  // the longest pause between two gifts of one combo
	answersFor   = 2 * time.Minute  // how long a request's first answer is remembered
	giftRetry    = 10 * time.Minute // how long the ledger remembers a gift's id, told in the welcome
	openTimeout  = 5 * time.Second  // for what the bus is asked when a room is made, and for settings
)

// withDefaults returns a copy in which zero fields have their defaults.
func (c Config) withDefaults() Config {
	if c.GiftsBy == "" {
		c.GiftsBy = protocol.GiftsByBackend
	}
	set(&c.MaxRooms, 20_000)
	set(&c.MaxUsers, 250_000)
	set(&c.MaxText, protocol.MaxTextGraphemes)
	set(&c.AnswersKept, 64)
	set(&c.ResumeGifts, 500)
	set(&c.Behind, 40*time.Millisecond)
	set(&c.GiftTimeout, 3*time.Second)
	set(&c.Heartbeat, 25*time.Second)
	set(&c.RoomIdle, 10*time.Second)
	set(&c.SweepEvery, time.Second)
	c.Audience = c.Audience.WithDefaults()
	if c.MarkKey == nil {
		c.MarkKey = []byte(rand.Text())
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.MIDs == nil {
		c.MIDs = protocol.NewMIDs()
	}
	if c.Shed == nil {
		c.Shed = func(protocol.Class) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics(nil)
	}
	return c
}

func set[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Validate returns every fault of the configuration, joined, each with its field; nil when there is none.
func (c Config) Validate() error {
	c = c.withDefaults()
	var faults []error
	if c.Bus == nil {
		faults = append(faults, errors.New("room: Bus: required"))
	}
	if c.GiftsBy == protocol.GiftsByHook && c.Till == nil {
		faults = append(faults, errors.New("room: Till: required where GiftsBy is hook"))
	}
	if c.Gate == nil {
		faults = append(faults, errors.New("room: Gate: required"))
	}
	for _, n := range []struct {
		field string
		value int
	}{
		{"MaxRooms", c.MaxRooms}, {"MaxUsers", c.MaxUsers}, {"MaxText", c.MaxText},
		{"AnswersKept", c.AnswersKept}, {"ResumeGifts", c.ResumeGifts},
	} {
		if n.value < 1 {
			faults = append(faults, fmt.Errorf("room: %s: want at least 1, have %d", n.field, n.value))
		}
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{

		{"GiftTimeout", c.GiftTimeout},
		{"Heartbeat", c.Heartbeat}, {"RoomIdle", c.RoomIdle}, {"SweepEvery", c.SweepEvery},
	} {
		if d.value < time.Millisecond {
			faults = append(faults, fmt.Errorf("room: %s: want at least 1ms, have %v", d.field, d.value))
		}
	}
	if err := c.Audience.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("room: Audience: %w", err))
	}
	for i, t := range c.EventTypes {
		if !protocol.ValidID(t) {
			faults = append(faults, fmt.Errorf("room: EventTypes[%d]: want a valid id, have %q", i, t))
		}
	}
	for _, f := range protocol.CheckGifts(c.Gifts) {
		faults = append(faults, fmt.Errorf("room: Gifts%s: want %s, have %s", f.Path, f.Allowed, f.Received))
	}
	return errors.Join(faults...)
}
