package room

import (
	"context"
	"errors"
	"time"

	"liveroom/protocol"
)

// Session is one viewer's socket. No method blocks or calls back into this package.
type Session interface {
	// Open hands over the welcome and what comes with it, events joined by commas, and releases what Deliver was given
	// since the member joined.
	Open(events []byte)
	// Deliver hands over a tick.
	Deliver(*protocol.Broadcast)
	// Release sends what Hold was given and nothing has taken along.
	Release()
	Control
}

// Control is the part of a session that is for it alone.
type Control interface {
	// Control hands over events, joined by commas, on the session's own lane: never dropped, closed instead.
	Control(events []byte)
	// Hold is Control for what may wait until the next Deliver, Control or Release and go with it.
	Hold(events []byte)
	// Await runs f, which waits for something else than the peer, without what sockets that have input share. False: too many
	// wait already, and f did not run.
	Await(f func()) bool
	// Aside runs f, which waits for something else than the peer, while the peer is read on. False: too many wait already, and f did
	// not run.
	Aside(f func()) bool
	// Close ends the session; only the first call counts.
	Close(protocol.Refusal)
}

// Feed takes what the bus delivers to a room. The calls to one feed come one after the other; none of them blocks.
type Feed interface {
	Traffic
	State
}

// Traffic is the part of a feed that every viewer sees as it is.
type Traffic interface {
	// Message takes what [Publisher.Publish] was given, on this node or another. Its bytes must not change any more.
	Message(c protocol.Class, message []byte)
	// Gift takes a gift in the ledger's order. The bus has filled holes before.
	Gift(protocol.StoredGift)
}

// State is the part of a feed that replaces what was known.
type State interface {
	// Likes takes the room's total over all nodes, after it was stored.
	Likes(total int64)
	// Settings takes the room's stored settings with their revision, which grows.
	Settings(value []byte, revision uint64)
	// Act takes what [SettingsStore].PutAct stored, in order, each once.
	Act(protocol.StoredAct)
}

// Bus carries rooms between nodes and keeps what must outlive one.
type Bus interface {
	Publisher
	Ledger
	Archive
	SettingsStore
	HeldStore
	ShowBook
	Auditor
	Eraser
	Noter
}

// Publisher is the part of the bus for what is shown and not kept.
type Publisher interface {
	// Subscribe makes the bus deliver a room's traffic to feed until stop is called, and returns what is stored of the
	// room. ctx bounds the call, not the subscription. A call to feed may still be under way when stop returns.
	Subscribe(ctx context.Context, room string, feed Feed) (o Opening, stop func(), err error)
	// Publish sends an encoded event, or a command of the class control. It does not block. An error means that nothing was sent;
	// [ErrForbidden], that showing it here alone would make another room of this node.
	Publish(c protocol.Class, room string, message []byte) error
}

// Ledger is the part of the bus that gifts are stored in.
type Ledger interface {
	// StoreGift begins to store a gift, behind those of calls before, and does not wait. done is called once, within that time: once the
	// gift is durable, or with an error, whether or not ctx has ended. One that is [ErrRefused] means that nothing was stored and nothing will be; with any other the
	// outcome is unknown. done must not block.
	StoreGift(ctx context.Context, room, user, id string, event []byte, within time.Duration, done func(protocol.Receipt, error))
	// Late reports whether a gift would be refused now, since the store is too far behind.
	Late() bool
	// Gifts returns at most limit stored gifts of the room with a sequence above after, in order.
	Gifts(ctx context.Context, room string, after uint64, limit int) ([]protocol.StoredGift, error)
	// GiftsEnd returns the sequence of the room's last gift, 0 for none. Nothing acknowledged is beyond it.
	GiftsEnd(ctx context.Context, room string) (uint64, error)
	// LedgerID tells this ledger from any other, whose sequences say nothing here; "" when it is not known.
	LedgerID() string
	// Gift returns the room's gift of that sequence, whose Prev need not be filled in.
	Gift(ctx context.Context, room string, seq uint64) (protocol.StoredGift, error)
}

// Till has gifts paid for that sockets send.
type Till interface {
	// Sell stores the gift once the platform has taken the price, and otherwise nothing. Its errors are those of
	// [Ledger].StoreGift, and a *[protocol.Error] that says why the platform refused.
	Sell(ctx context.Context, s *Sale) (protocol.Receipt, error)
}

// Sale is a gift that somebody has to pay for.
type Sale struct {
	Room  string
	ID    string // with room and user the gift's idempotency key
	Gift  protocol.Gift
	Price int64  // of one
	Event []byte // as [protocol.AppendGift] made it
}

// Opening is what is stored of a room when its subscription begins; what comes later comes on the feed.
type Opening struct {
	Known    bool   // false: the store did not answer, and the feed gets likes and settings as soon as it does
	LastGift uint64 // sequence of the room's last gift, 0 for none
	Likes    int64  // the room's total
	Settings []byte // nil for none
	Revision uint64 // of Settings, 0 for none
	Acts     []protocol.StoredAct
}

// Archive is the part of the bus for what may be lost without harm, though not lightly.
type Archive interface {
	// Recent returns the room's danmaku of the last minutes, as the store counts them, oldest first, the newest limit of them.
	Recent(ctx context.Context, room string, limit int) ([][]byte, error)
	// AddLikes takes delta more likes of the room, stores them before anybody is shown them, and brings the new total on
	// the feed. It does not wait. After an error nothing counts as taken.
	AddLikes(room string, delta int64) error
}

// SettingsStore is the part of the bus that keeps what moderators decide.
type SettingsStore interface {
	// Settings returns the value stored last and its revision; nil and 0 when there is none.
	Settings(ctx context.Context, room string) (value []byte, revision uint64, err error)
	// PutSettings stores value when the stored revision is still the given one (0: there is none), and returns the new
	// one; otherwise an error that is [ErrConflict].
	PutSettings(ctx context.Context, room string, value []byte, revision uint64) (uint64, error)
	// PutAct stores an act when the room's last one still has that number (0: there is none), and returns its own, which grows;
	// otherwise an error that is [ErrConflict]. alone takes those before it away.
	PutAct(ctx context.Context, room string, value []byte, last uint64, alone bool) (uint64, error)
	// ActsAfter returns the room's acts with a number above after, in order.
	ActsAfter(ctx context.Context, room string, after uint64) ([]protocol.StoredAct, error)
}

// HeldStore is the part of the bus that keeps messages that wait for staff. What it stores comes to [Hub.HeardHeld] of every node.
type HeldStore interface {
	// PutHeld stores value if what is stored of the message still is number last (0: nothing), and returns its number, which grows;
	// otherwise an error that is [ErrConflict]. done says that it is the last word, which may go after a while.
	PutHeld(ctx context.Context, room, mid string, value []byte, last uint64, done bool) (uint64, error)
	// ReadHeld returns what is stored last of a message, and its number; nil and 0 for none.
	ReadHeld(ctx context.Context, room, mid string) ([]byte, uint64, error)
}

// ShowBook is the part of the bus that keeps who has been in a room, one record for each.
type ShowBook interface {
	// Show returns the room's record and its revision; nil and 0 when there is none.
	Show(ctx context.Context, room string) (record []byte, revision uint64, err error)
	// PutShow stores a record when the stored revision is still the given one (0: there is none), and returns the new one;
	// otherwise an error that is [ErrConflict].
	PutShow(ctx context.Context, room string, record []byte, revision uint64) (uint64, error)
}

// Auditor is the part of the bus that remembers who decided what.
type Auditor interface {
	// Audit keeps an entry about the room and returns its number, 1 or more.
	Audit(ctx context.Context, room string, entry []byte) (seq uint64, err error)
	// Audited returns the room's entry with a number; nil when there is none, or no more.
	Audited(ctx context.Context, room string, seq uint64) ([]byte, error)
}

// Eraser is the part of the bus that forgets.
type Eraser interface {
	// Erase stores what is to be forgotten, for all nodes to hear of, and returns once it is.
	Erase(ctx context.Context, e Erasure) error
	// ErasedUntil is until when all that a user did was erased, in Unix ms; 0: never. It costs a look-up.
	ErasedUntil(user string) int64
}

// Noter is the part of the bus for what is kept for back ends that read on and shown to no viewer.
type Noter interface {
	// Note keeps an event of a room, "" for what is of none. It does not wait. An error means that nothing was sent.
	Note(room string, event []byte) error
}

// Errors that a [Bus] tells apart.
var (
	// ErrRefused says that nothing was stored and nothing will be.
	ErrRefused = errors.New("room: refused by the bus")
	// ErrForbidden says that the bus is there and takes nothing of this kind from this node, for as long as nobody mends that.
	ErrForbidden = errors.New("room: forbidden by the bus")
	// ErrConflict says that the settings, or a held message, were changed since the revision that the caller knows.
	ErrConflict = errors.New("room: changed meanwhile")
)
