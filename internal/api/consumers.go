package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"liveroom/internal/journal"
	"liveroom/internal/webhook"
	"liveroom/protocol"
)

// fromOldest is the cursor before all that is kept.
const fromOldest = "oldest"

func (a *API) consumerCalls() []route {
	return []route{
		{http.MethodGet, "/consumers", hears, a.listConsumers},
		{http.MethodGet, "/consumers/{name}", hears, a.getConsumer},
		{http.MethodPut, "/consumers/{name}", hears, a.putConsumer},
		{http.MethodDelete, "/consumers/{name}", hears, a.deleteConsumer},
		{http.MethodPost, "/consumers/{name}/ack", hears, a.ackConsumer},
		{http.MethodGet, "/consumers/{name}/dead", hears, a.listDead},
		{http.MethodPost, "/consumers/{name}/dead", hears, a.sendDead},
		{http.MethodDelete, "/consumers/{name}/dead/{seq}", hears, a.dropDead},
	}
}

// consumer is a reader with a name as it is shown.
type consumer struct {
	Name   string         `json:"name"`
	Rooms  []string       `json:"rooms"`
	Kinds  []journal.Kind `json:"kinds"`
	Cursor string         `json:"cursor"`
	Paused bool           `json:"paused"`
	Owned  bool           `json:"webhook"`
	Holder string         `json:"node,omitempty"`
	Made   int64          `json:"made"`
	Moved  int64          `json:"moved"`
	Lag    lag            `json:"lag"`
}

type lag struct {
	Events  uint64  `json:"events"`
	Seconds float64 `json:"seconds"`
}

func (a *API) shown(ctx context.Context, c journal.Consumer) (consumer, error) {
	behind, err := a.cfg.Consumers.Lag(ctx, c.At, c.Filter())
	return consumer{c.Name, append([]string{}, c.Rooms...), append([]journal.Kind{}, c.Kinds...), c.At.String(), c.Paused, c.Owned, c.Holder, c.Made, c.Moved, lag(behind)},
		readerError(err)
}

// readerError tells what is the caller's to mend from a store that does not answer.
func readerError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, journal.ErrNoConsumer):
		return &protocol.Error{Reason: protocol.ReasonNotFound, Detail: "consumer"}
	case errors.Is(err, journal.ErrMoved), errors.Is(err, journal.ErrTooMany):
		return &protocol.Error{Reason: protocol.ReasonConflict, Detail: err.Error()}
	}
	var known *protocol.Error
	if errors.As(err, &known) {
		return err
	}
	return storeError{fmt.Errorf("consumers: %w", err)}
}

// mayRead refuses a consumer of rooms that the caller's token is not for.
func (c call) mayRead(rooms []string) error {
	if c.Everywhere() || len(rooms) > 0 && !slices.ContainsFunc(rooms, func(r string) bool { return !c.Allows(r) }) {
		return nil
	}
	return &protocol.Error{Reason: protocol.ReasonForbidden}
}

// consumer returns the one that a call is about, if it is the caller's to see.
func (a *API) consumer(ctx context.Context, name string, c call) (journal.Consumer, error) {
	if err := protocol.CheckRoom("consumer", name); err != nil {
		return journal.Consumer{}, err
	}
	got, err := a.cfg.Consumers.Consumer(ctx, name)
	if err != nil {
		return got, readerError(err)
	}
	return got, c.mayRead(got.Rooms)
}

func (a *API) listConsumers(_ http.ResponseWriter, r *http.Request, c call) (any, error) {
	all, err := a.cfg.Consumers.All(r.Context())
	if err != nil {
		return nil, readerError(err)
	}
	out := struct {
		Consumers []consumer `json:"consumers"`
	}{Consumers: []consumer{}}
	for _, one := range all {
		if c.mayRead(one.Rooms) != nil {
			continue
		}
		shown, err := a.shown(r.Context(), one)
		if err != nil {
			return nil, err
		}
		out.Consumers = append(out.Consumers, shown)
	}
	return out, nil
}

func (a *API) getConsumer(_ http.ResponseWriter, r *http.Request, c call) (any, error) {
	got, err := a.consumer(r.Context(), r.PathValue("name"), c)
	if err != nil {
		return nil, err
	}
	return a.shown(r.Context(), got)
}

type consumerBody struct {
	Rooms  *[]string `json:"rooms"`
	Kinds  *[]string `json:"kinds"`
	From   string    `json:"from"`
	Since  uint64    `json:"since"`
	Paused *bool     `json:"paused"`
}

// putConsumer makes a consumer, or changes what the body names of it.
func (a *API) putConsumer(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	var b consumerBody
	if err := decode(w, r, &b); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	if err := protocol.CheckRoom("consumer", name); err != nil {
		return nil, err
	}
	rooms, kinds, err := b.filter(c)
	if err != nil {
		return nil, err
	}
	if b.From != "" && b.Since > 0 {
		return nil, protocol.BadField("since", "from or since, not both", fmt.Sprint(b.Since))
	}
	made := false
	got, err := a.cfg.Consumers.Change(r.Context(), name, func(one *journal.Consumer, isNew bool) error {
		if made = isNew; !isNew {
			if err := c.mayRead(one.Rooms); err != nil {
				return err
			}
		}
		if one.Owned && (b.Rooms != nil || b.Kinds != nil) {
			return protocol.BadField("rooms, kinds", "nothing: those of a webhook are the configuration's", "some")
		}
		to := one.Filter()
		if isNew || b.Rooms != nil {
			to.Rooms = rooms
		}
		if isNew || b.Kinds != nil {
			to.Kinds = kinds
		}
		if err := a.cfg.Consumers.Refit(r.Context(), one, to); err != nil {
			return err
		}
		if b.Paused != nil {
			one.Paused = *b.Paused
		}
		return a.replay(r.Context(), one, b, isNew)
	})
	if err != nil {
		return nil, readerError(err)
	}
	shown, err := a.shown(r.Context(), got)
	if made && err == nil {
		return reply{http.StatusCreated, shown}, nil
	}
	return shown, err
}

// filter reads rooms and kinds.
func (b *consumerBody) filter(c call) (rooms []string, kinds []journal.Kind, err error) {
	if b.Rooms != nil {
		rooms = *b.Rooms
	}
	if rooms, err = allowedRooms(rooms, c); err != nil {
		return nil, nil, err
	}
	if b.Kinds != nil {
		kinds, err = kindsOf(*b.Kinds)
	}
	return rooms, kinds, err
}

// replay moves a consumer to where the body says; a new one begins with what comes.
func (a *API) replay(ctx context.Context, one *journal.Consumer, b consumerBody, isNew bool) (err error) {
	switch {
	case b.From == fromOldest:
		one.At = journal.Cursor{}
	case b.From != "" || b.Since > 0:
		one.At, err = a.place(ctx, "from", b.From, b.Since)
	case isNew:
		one.At, err = a.place(ctx, "from", afterNow, 0)
	default:
		return nil
	}
	one.Moved = time.Now().UnixMilli()
	return err
}

func (a *API) deleteConsumer(_ http.ResponseWriter, r *http.Request, c call) (any, error) {
	got, err := a.consumer(r.Context(), r.PathValue("name"), c)
	if err == nil && a.cfg.Webhook(got.Name) != nil {
		err = &protocol.Error{Reason: protocol.ReasonConflict, Detail: "a webhook of the configuration: take it away there first"}
	}
	if err == nil {
		err = a.cfg.Consumers.Drop(r.Context(), got)
	}
	if err != nil {
		return nil, readerError(err)
	}
	return struct{}{}, nil
}

type ackBody struct {
	Cursor string  `json:"cursor"`
	After  *string `json:"after"`
}

// ackConsumer moves a consumer's place on.
func (a *API) ackConsumer(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	var b ackBody
	if err := decode(w, r, &b); err != nil {
		return nil, err
	}
	to, err := journal.ParseCursor(b.Cursor)
	if err != nil {
		return nil, protocol.BadField("cursor", "a cursor of this server, as next or id named it", b.Cursor)
	}
	if _, err := a.consumer(r.Context(), r.PathValue("name"), c); err != nil {
		return nil, err
	}
	got, err := a.cfg.Consumers.Change(r.Context(), r.PathValue("name"), func(one *journal.Consumer, isNew bool) error {
		switch {
		case isNew:
			return journal.ErrNoConsumer
		case one.Owned:
			return &protocol.Error{Reason: protocol.ReasonConflict, Detail: "a webhook's place moves on by what is delivered; PUT moves it"}
		case b.After != nil && *b.After != one.At.String():
			return &protocol.Error{Reason: protocol.ReasonConflict, Detail: "after: the consumer is elsewhere, somebody else read for it or moved it"}
		}
		one.At, one.Moved = to, time.Now().UnixMilli()
		return nil
	})
	if err != nil {
		return nil, readerError(err)
	}
	return struct {
		Name   string `json:"name"`
		Cursor string `json:"cursor"`
	}{got.Name, got.At.String()}, nil
}

// Webhook is what became of events that were delivered.
type Webhook interface {
	// Dead returns at most limit dead letters with Seq above after, in order.
	Dead(ctx context.Context, after uint64, limit int) ([]webhook.Letter, error)
	// SendAgain delivers those of the numbers, or without any the oldest, and returns how many were taken, and why the next was not.
	SendAgain(ctx context.Context, seqs []uint64) (sent int, why string, err error)
	// Discard takes one away; false: there is none of that number.
	Discard(ctx context.Context, seq uint64) (bool, error)
}

// webhook returns the one that a call is about.
func (a *API) webhook(r *http.Request, c call) (Webhook, error) {
	if _, err := a.consumer(r.Context(), r.PathValue("name"), c); err != nil {
		return nil, err
	}
	if w := a.cfg.Webhook(r.PathValue("name")); w != nil {
		return w, nil
	}
	return nil, &protocol.Error{Reason: protocol.ReasonNotFound, Detail: "consumer: it is no webhook of this node's configuration"}
}

func (a *API) listDead(_ http.ResponseWriter, r *http.Request, c call) (any, error) {
	w, err := a.webhook(r, c)
	if err != nil {
		return nil, err
	}
	after, fault := number(r, "after", 0, 1<<63, 0)
	if fault != nil {
		return nil, fault
	}
	most, fault := number(r, "limit", 1, maxListed, defaultListed)
	if fault != nil {
		return nil, fault
	}
	dead, err := w.Dead(r.Context(), after, int(most))
	if err != nil {
		return nil, readerError(err)
	}
	return struct {
		Dead []webhook.Letter `json:"dead"`
	}{append([]webhook.Letter{}, dead...)}, nil
}

// sendWithin bounds what one call has delivered again.
const sendWithin = 20 * time.Second

func (a *API) sendDead(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	var b struct {
		Seqs []uint64 `json:"seqs"`
	}
	if err := decode(w, r, &b); err != nil {
		return nil, err
	}
	if len(b.Seqs) > webhook.MostAgain || slices.Contains(b.Seqs, 0) {
		return nil, protocol.BadField("seqs", fmt.Sprintf("at most %d numbers from 1", webhook.MostAgain), fmt.Sprint(len(b.Seqs)))
	}
	to, err := a.webhook(r, c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), sendWithin)
	defer cancel()
	sent, why, err := to.SendAgain(ctx, b.Seqs)
	if err != nil {
		return nil, readerError(err)
	}
	return struct {
		Sent int    `json:"sent"`
		Why  string `json:"why,omitempty"`
	}{sent, why}, nil
}

func (a *API) dropDead(_ http.ResponseWriter, r *http.Request, c call) (any, error) {
	w, err := a.webhook(r, c)
	if err != nil {
		return nil, err
	}
	seq, err := strconv.ParseUint(r.PathValue("seq"), 10, 64)
	if err != nil {
		return nil, protocol.BadField("seq", "the number of a dead letter", r.PathValue("seq"))
	}
	was, err := w.Discard(r.Context(), seq)
	switch {
	case err != nil:
		return nil, readerError(err)
	case !was:
		return nil, &protocol.Error{Reason: protocol.ReasonNotFound, Detail: "seq"}
	}
	return struct{}{}, nil
}
