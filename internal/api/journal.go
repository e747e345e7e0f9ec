package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"liveroom/internal/journal"
	"liveroom/limit"
	"liveroom/protocol"
)

// Bounds of one reading.
const (
	maxWait       = 25 // seconds
	maxEventRooms = 100
	// maxReaders wait or are streamed to at a time.
	maxReaders = 256
	// streamWrite is how long a reader of a stream may take nothing.
	streamWrite = 30 * time.Second
	// streamSilence is how long a stream says nothing at most, so that proxies keep it and the reader's place moves on.
	streamSilence = 15 * time.Second
)

// afterNow is the cursor behind all that is there.
const afterNow = "now"

func (a *API) journalCalls() []route {
	return []route{{http.MethodGet, "/events", hears, a.listEvents}}
}

// eventPage is a page of the journal.
type eventPage struct {
	Events []journal.Entry `json:"events"`
	Next   string          `json:"next"` // goes on behind it
	More   bool            `json:"more"` // there is more by now
	Paused bool            `json:"paused,omitempty"`
}

// eventQuery is what a caller asks of the journal.
type eventQuery struct {
	consumer string // whose place from is; "": nobody's
	paused   bool   // it is given nothing now
	from     journal.Cursor
	filter   journal.Filter
	limit    int
	wait     time.Duration
}

func (a *API) listEvents(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	q, err := a.eventQuery(r, c)
	if err != nil {
		return nil, err
	}
	stream := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	if q.paused && stream {
		return nil, &protocol.Error{Reason: protocol.ReasonConflict, Detail: "the consumer is paused"}
	}
	if q.wait == 0 && !stream {
		page, err := a.read(r.Context(), q)
		return a.page(q, page, err)
	}
	select {
	case a.readers <- struct{}{}:
		defer func() { <-a.readers }()
		waiting := a.reading[map[bool]string{true: byStream, false: byPoll}[stream]]
		waiting.Inc()
		defer waiting.Dec()
	default:
		return nil, &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(5 * time.Second)}
	}
	// A request may take longer than the listener lets others take. A writer without a connection has no deadline.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(a.cfg.Ending, cancel)()
	if stream {
		return nil, a.stream(ctx, w, q)
	}
	ctx, done := context.WithTimeout(ctx, q.wait)
	defer done()
	if q.paused {
		<-ctx.Done()
		page, err := a.read(r.Context(), q)
		return a.page(q, page, err)
	}
	page, err := a.cfg.Consumers.Wait(ctx, q.from, q.filter, q.limit)
	return a.page(q, page, err)
}

// read returns what there is, which for a paused consumer is nothing.
func (a *API) read(ctx context.Context, q eventQuery) (journal.Page, error) {
	if q.paused {
		return journal.Page{Next: q.from}, nil
	}
	return a.cfg.Consumers.Read(ctx, q.from, q.filter, q.limit)
}

func (a *API) page(q eventQuery, page journal.Page, err error) (any, error) {
	if err != nil {
		return nil, storeError{fmt.Errorf("read events: %w", err)}
	}
	a.cfg.Consumers.Metrics.Told(page.Entries)
	return eventPage{append([]journal.Entry{}, page.Entries...), page.Next.String(), page.More, q.paused}, nil
}

// stream sends entries as they come (HTML, section 9.2), until the caller goes, takes nothing, or the server ends. Each has the
// place behind it as its id, by which a browser's EventSource and others come back.
func (a *API) stream(ctx context.Context, w http.ResponseWriter, q eventQuery) error {
	to := http.NewResponseController(w)
	send := func(b []byte) error {
		_ = to.SetWriteDeadline(time.Now().Add(streamWrite)) // a writer without a connection has none
		if _, err := w.Write(b); err != nil {
			return err
		}
		return to.Flush()
	}
	// What is wrong with the store is told as an answer, not in a stream.
	page, err := a.cfg.Consumers.Read(ctx, q.from, q.filter, q.limit)
	if err != nil {
		return storeError{fmt.Errorf("read events: %w", err)}
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would keep it back
	w.WriteHeader(http.StatusOK)
	for ctx.Err() == nil && err == nil {
		if send(appendStream(nil, page)) != nil {
			return nil // the client went away: nobody is left to tell
		}
		a.cfg.Consumers.Metrics.Told(page.Entries)
		quiet, done := context.WithTimeout(ctx, streamSilence)
		page, err = a.cfg.Consumers.Wait(quiet, page.Next, q.filter, q.limit)
		done()
		if len(page.Entries) > 0 && a.pausedNow(ctx, q.consumer) {
			return nil // what was read is read again
		}
	}
	return nil // it comes back to where it was
}

func appendStream(dst []byte, page journal.Page) []byte {
	for _, e := range page.Entries {
		data, _ := json.Marshal(e) // what was stored is JSON
		dst = fmt.Appendf(dst, "id: %s\nevent: %s\ndata: %s\n\n", e.Cursor(), e.Kind, data)
	}
	return fmt.Appendf(dst, "id: %s\n\n", page.Next)
}

// pausedNow reports whether a consumer is known to be paused, or gone.
func (a *API) pausedNow(ctx context.Context, name string) bool {
	if name == "" {
		return false
	}
	c, err := a.cfg.Consumers.Consumer(ctx, name)
	return errors.Is(err, journal.ErrNoConsumer) || err == nil && c.Paused
}

// eventQuery reads the parameters.
func (a *API) eventQuery(r *http.Request, c call) (q eventQuery, err error) {
	values := r.URL.Query()
	if q.filter.Rooms, err = roomsOf(values.Get("rooms"), c); err != nil {
		return q, err
	}
	if q.filter.Kinds, err = kindsOf(words(values.Get("kinds"))); err != nil {
		return q, err
	}
	most, fault := number(r, "limit", 1, maxListed, defaultListed)
	if fault != nil {
		return q, fault
	}
	wait, fault := number(r, "wait", 0, maxWait, 0)
	if fault != nil {
		return q, fault
	}
	since, fault := number(r, "since", 0, 1<<53, 0)
	if fault != nil {
		return q, fault
	}
	q.limit, q.wait = int(most), time.Duration(wait)*time.Second
	after := values.Get("after")
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		after, since = last, 0
	}
	if since > 0 && after != "" {
		return q, protocol.BadField("since", "after or since, not both", strconv.FormatUint(since, 10))
	}
	if q.consumer = values.Get("consumer"); q.consumer != "" {
		return q, a.asConsumer(r, c, &q, after)
	}
	q.from, err = a.place(r.Context(), "after", after, since)
	return q, err
}

// asConsumer reads for a consumer: what it is for, from its place or, within a stream that comes back, from the stream's.
func (a *API) asConsumer(r *http.Request, c call, q *eventQuery, after string) error {
	values := r.URL.Query()
	for _, its := range []string{"rooms", "kinds", "since"} {
		if values.Has(its) {
			return protocol.BadField(its, "nothing beside consumer, which has its own", values.Get(its))
		}
	}
	one, err := a.consumer(r.Context(), q.consumer, c)
	if err != nil {
		return err
	}
	q.from, q.filter, q.paused = one.At, one.Filter(), one.Paused
	if after != "" {
		q.from, err = a.place(r.Context(), "after", after, 0)
	}
	return err
}

// kindsOf are the kinds that are asked for.
func kindsOf(asked []string) (kinds []journal.Kind, err error) {
	for _, k := range asked {
		if !slices.Contains(journal.Kinds(), journal.Kind(k)) {
			return nil, protocol.BadField("kinds", strings.Trim(fmt.Sprint(journal.Kinds()), "[]"), k)
		}
		kinds = append(kinds, journal.Kind(k))
	}
	return kinds, nil
}

// place is where a reading begins: at a cursor, which a field named, at an instant (Unix ms), or at the oldest that is kept.
func (a *API) place(ctx context.Context, field, after string, since uint64) (at journal.Cursor, err error) {
	switch {
	case after == afterNow:
		at, err = a.cfg.Consumers.Now(ctx)
	case since > 0:
		at, err = a.cfg.Consumers.Since(ctx, time.UnixMilli(int64(since)))
	case after != "":
		if at, err = journal.ParseCursor(after); err != nil {
			return at, protocol.BadField(field, "a cursor of this server, as next or id named it, now, or "+fromOldest+" of a consumer", after)
		}
	}
	if err != nil {
		return at, storeError{fmt.Errorf("find the place in the events: %w", err)}
	}
	return at, nil
}

// roomsOf are the rooms that are asked for, or that the token is for.
func roomsOf(asked string, c call) ([]string, error) { return allowedRooms(words(asked), c) }

func allowedRooms(rooms []string, c call) ([]string, error) {
	if len(rooms) > maxEventRooms {
		return nil, protocol.BadField("rooms", fmt.Sprintf("at most %d, with commas", maxEventRooms), strconv.Itoa(len(rooms)))
	}
	for _, room := range rooms {
		if err := protocol.CheckRoom("rooms", room); err != nil {
			return nil, err
		}
		if !c.Allows(room) {
			return nil, &protocol.Error{Reason: protocol.ReasonForbidden}
		}
	}
	if len(rooms) == 0 && !c.Everywhere() {
		rooms = c.Rooms
	}
	return rooms, nil
}

// words reads a list with commas.
func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
