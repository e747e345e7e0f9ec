package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/fanout/link"
	"liveroom/fanout/store"
	"liveroom/internal/edition"
	"liveroom/internal/journal"
	"liveroom/internal/rulebook"
	"liveroom/protocol"
)

// logs lets the journal read the fabric's streams.
type logs struct{ *store.Journal }

var _ journal.Store = logs{}

// consumers are the journal with the places of who reads it.
func (n *Node) consumers(reg prometheus.Registerer) journal.Consumers {
	return journal.Consumers{Journal: journal.Journal{Store: logs{n.fabric.Store.Journal}}, Keeper: places{n.fabric.Store.Readers}, Metrics: journal.NewMetrics(reg)}
}

// places keeps consumers in the fabric.
type places struct{ *store.Readers }

var _ journal.Keeper = places{}

// Kept implements [journal.Keeper].
func (p places) Kept(ctx context.Context, name string) (journal.Kept, error) {
	r, err := p.Reader(ctx, name)
	return journal.Kept(r), err
}

// Keep implements [journal.Keeper].
func (p places) Keep(ctx context.Context, k journal.Kept) (uint64, error) {
	revision, err := p.PutReader(ctx, store.ReaderRecord(k))
	return revision, movedError(err)
}

// Forget implements [journal.Keeper].
func (p places) Forget(ctx context.Context, k journal.Kept) error {
	return movedError(p.DropReader(ctx, store.ReaderRecord(k)))
}

// AllKept implements [journal.Keeper].
func (p places) AllKept(ctx context.Context) ([]journal.Kept, error) {
	all, err := p.AllReaders(ctx)
	out := make([]journal.Kept, len(all))
	for i, r := range all {
		out[i] = journal.Kept(r)
	}
	return out, err
}

func movedError(err error) error {
	if errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("%w: %w", journal.ErrMoved, err)
	}
	return err
}

// streams says where the journal's logs are, on which subjects, and how a record of each is told.
var streams = [journal.NumLogs]struct {
	name, all string
	of        func(room string) string // the subject of a room; nil: it is not looked for
	tell      func(*journal.Record, link.Record)
}{
	journal.Acts:   {link.AuditStream, link.AuditPrefix + "*", nil, tellAct},
	journal.Limits: {link.RulesStream, link.RulesSubject, nil, tellLimits},
	journal.Gifts:  {link.GiftStream, link.GiftPrefix + "*", func(room string) string { return link.GiftPrefix + protocol.Token(room) }, tellGift},
	journal.Said:   {link.EventsStream, link.SaidPrefix + "*", func(room string) string { return link.SaidPrefix + protocol.Token(room) }, tellSaid},
}

// State implements [journal.Store].
func (s logs) State(ctx context.Context, l journal.Log) (journal.State, error) {
	name, info, err := s.Journal.State(ctx, streams[l].name)
	if err != nil {
		return journal.State{}, err
	}
	is := info.State
	return journal.State{Name: name, First: is.FirstSeq, Last: is.LastSeq, Time: is.LastTime, Erased: is.NumDeleted > 0, Asked: info.TimeStamp}, nil
}

// Records implements [journal.Store].
func (s logs) Records(ctx context.Context, l journal.Log, q journal.Query) ([]journal.Record, error) {
	from := streams[l]
	ask := link.Ask{Seq: max(q.From, 1), Next: from.all, Batch: q.Most}
	if q.Room != "" && from.of != nil {
		ask.Next = from.of(q.Room)
	}
	if !q.Since.IsZero() {
		ask.Seq, ask.Start = 0, &q.Since
	}
	kept, err := s.Journal.Records(ctx, from.name, ask)
	if err != nil {
		return nil, err
	}
	out := make([]journal.Record, len(kept))
	for i, k := range kept {
		r := journal.Record{Seq: k.Seq, Time: k.Time, Number: k.Number, Before: k.Before}
		from.tell(&r, k)
		out[i] = r
	}
	return out, nil
}

// roomOf is the room of a subject; false of one that names none, as what the server keeps for itself.
func roomOf(subject, prefix string) (room string, ok bool) {
	room = link.RoomOf(strings.TrimPrefix(subject, prefix))
	return room, protocol.CheckRoom("room", room) == nil
}

func tellAct(r *journal.Record, k link.Record) {
	room, ok := roomOf(k.Subject, link.AuditPrefix)
	if !ok && room != protocol.UsersAudit {
		return
	}
	if !ok {
		room = ""
	}
	r.Kind, r.Room, r.Event = journal.Moderation, room, k.Data
	var act struct {
		Action string `json:"action"`
	}
	_ = json.Unmarshal(k.Data, &act) // what a later version writes is moderation
	switch act.Action {
	case string(protocol.ActionAnnounce):
		r.Kind = journal.Announcement
	case string(protocol.ActionOpen), string(protocol.ActionClose), "settings":
		r.Kind = journal.Room
	}
}

func tellLimits(r *journal.Record, k link.Record) {
	event, err := rulebook.Told(edition.Record{Version: k.Seq, Payload: k.Data, Time: k.Time, Node: k.Node})
	if err == nil { // what a later version writes may be another thing
		r.Kind, r.Event = journal.LimitSet, event
	}
}

func tellGift(r *journal.Record, k link.Record) {
	if room, ok := roomOf(k.Subject, link.GiftPrefix); ok {
		r.Kind, r.Room = journal.Gift, room
		r.Event = protocol.AppendLoggedGift(nil, protocol.StoredGift{Seq: k.Seq, Event: k.Data, Time: k.Time, Paid: k.Paid})
	}
}

// said are the kinds of what was said, by the event's name. One that is not among them is of a later version.
var said = map[string]journal.Kind{"danmaku": journal.Danmaku, "custom": journal.Custom, "held": journal.Held, "room": journal.Room, "audience": journal.Audience, "session": journal.Session}

// tellSaid tells events, which begin with their names, and like totals, which are decimals.
func tellSaid(r *journal.Record, k link.Record) {
	room, ok := roomOf(k.Subject, link.SaidPrefix)
	if !ok && !store.OfNoRoom(k.Subject) {
		return
	}
	if ok {
		r.Room = room
	}
	if total, err := strconv.ParseInt(string(k.Data), 10, 64); err == nil {
		r.Kind, r.Event = journal.Likes, protocol.AppendLike(nil, 0, total)
		return
	}
	name, _ := bytes.CutPrefix(k.Data, []byte(`{"ev":"`))
	name, _, _ = bytes.Cut(name, []byte(`"`))
	r.Kind, r.Event = said[string(name)], k.Data
}
