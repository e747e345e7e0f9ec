package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"liveroom/internal/filter"
	"liveroom/protocol"
	"liveroom/room"
)

// Said reads what was said in the last minutes, on all nodes.
type Said interface {
	// Recent returns the room's danmaku events, oldest first, the newest limit of them; RecentOfAll those of all rooms.
	Recent(ctx context.Context, room string, limit int) ([][]byte, error)
	RecentOfAll(ctx context.Context, limit int) ([][]byte, error)
}

// Bounds of a preview of a list.
const (
	previewTexts = 2000 // the newest of the last five minutes
	previewShown = 50   // of those that have a word
)

func (a *API) filterCalls() []route {
	return []route{
		{http.MethodGet, "/filter", speaks, a.getFilter},
		{http.MethodPut, "/filter", administers, a.putFilter},
		{http.MethodGet, "/filter/versions", speaks, a.listFilters},
		{http.MethodPost, "/filter/rollback", administers, a.rollbackFilter},
		{http.MethodPost, "/filter/test", knowsRoomOfBody, a.testFilter},
		{http.MethodPost, "/filter/preview", administers, a.previewFilter},
		{http.MethodPost, "/rooms/{room}/filter/preview", knows, a.previewRoomFilter},
		{http.MethodGet, "/rooms/{room}/shield/preview", knows, a.previewShield},
	}
}

// knowsRoomOfBody is for calls whose body names the room; the call looks at it.
func knowsRoomOfBody(c caller, _ string) bool { return c.known }

// filterError is an error of a change of the platform's list.
type filterError struct{ error }

// Unwrap returns what the store said.
func (e filterError) Unwrap() error { return e.error }

func (a *API) getFilter(w http.ResponseWriter, r *http.Request, _ call) (any, error) {
	is := a.cfg.Filter.Current()
	if unchanged(w, r, is.Version) {
		return nil, nil
	}
	return is, nil
}

func (a *API) putFilter(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	if r.Header.Get("If-Match") == "" {
		return noIfMatch(), nil
	}
	version, err := ifMatch(r)
	if err != nil {
		return nil, filterError{err}
	}
	note := r.URL.Query().Get("note")
	if err := checkNote(note); err != nil {
		return nil, err
	}
	var list protocol.WordList
	if err := decodeUpTo(w, r, &list, maxFilterBytes); err != nil {
		return nil, err
	}
	if list.Words == nil { // no slip may take all words away
		return nil, protocol.BadField("words", "a list of words", "nothing")
	}
	e, err := a.cfg.Filter.Publish(r.Context(), list, c.User, note, version)
	return changedFilter(w, e, err)
}

// changedFilter tells of a version without its words, which the caller has.
func changedFilter(w http.ResponseWriter, e *filter.Edition, err error) (any, error) {
	if err != nil {
		return nil, storeError{filterError{err}}
	}
	w.Header().Set("ETag", etag(e.Version))
	told := *e
	told.Words = nil
	return &told, nil
}

func (a *API) listFilters(_ http.ResponseWriter, r *http.Request, _ call) (any, error) {
	before, most, err := page(r, "before", 50, 10)
	if err != nil {
		return nil, err
	}
	all, failed := a.cfg.Filter.History(r.Context(), before, most)
	if failed != nil {
		return nil, storeError{failed}
	}
	return struct {
		Versions []*filter.Edition `json:"versions"`
	}{all}, nil
}

func (a *API) rollbackFilter(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	to, on, note, err := readRollback(w, r)
	if err != nil {
		return nil, err
	}
	e, err := a.cfg.Filter.Rollback(r.Context(), to, on, c.User, note)
	return changedFilter(w, e, err)
}

type filterTest struct {
	Text   string             `json:"text"`
	Room   string             `json:"room"`
	Filter *protocol.WordList `json:"filter"` // in place of the room's list, or without a room of the platform's
}

func (a *API) testFilter(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	var b filterTest
	most := int64(maxRoomFilterBytes)
	if c.Administers() { // whose list is the platform's
		most = maxFilterBytes
	}
	if err := decodeUpTo(w, r, &b, most); err != nil {
		return nil, err
	}
	words, bytes := filter.PlatformWords, filter.PlatformBytes
	if b.Room != "" {
		words, bytes = filter.RoomWords, filter.RoomBytes
	}
	set, err := filter.Compile(b.Filter, words, bytes)
	if err != nil {
		err.Detail = "filter." + err.Detail
		return nil, err
	}
	if b.Room == "" {
		if !c.Administers() && !c.Speaks() {
			return nil, protocol.BadField("room", "a room that you moderate", "")
		}
		return wrap(a.cfg.Hub.Try(b.Text, set))
	}
	if err := protocol.CheckRoom("room", b.Room); err != nil {
		return nil, err
	}
	if !knows(c.caller, b.Room) {
		return nil, &protocol.Error{Reason: protocol.ReasonForbidden}
	}
	var out room.Tried
	c.room = b.Room
	if err := a.asStaff(r, c, func(rm *room.Room) (err *protocol.Error) { out, err = rm.Try(b.Text, set); return err }); err != nil {
		return nil, err
	}
	return out, nil
}

// wrap keeps a nil *protocol.Error from becoming an error.
func wrap(v any, err *protocol.Error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// caught is what a list would have made of one danmaku.
type caught struct {
	MID    string                `json:"mid"`
	User   protocol.User         `json:"user"`
	Text   string                `json:"text"`
	TS     int64                 `json:"ts"`
	Action protocol.FilterAction `json:"action"`
	Word   string                `json:"word"`
	Shown  string                `json:"shown"` // where it is shown
}

// filterPreview is what a list would have made of the last minutes.
type filterPreview struct {
	Words   int                           `json:"words"`
	Looked  int                           `json:"looked"` // at so many danmaku
	Caught  int                           `json:"caught"`
	Actions map[protocol.FilterAction]int `json:"actions"`
	Newest  []caught                      `json:"newest"` // of the caught, the newest first
}

func (a *API) previewFilter(w http.ResponseWriter, r *http.Request, _ call) (any, error) {
	var list protocol.WordList
	if err := decodeUpTo(w, r, &list, maxFilterBytes); err != nil {
		return nil, err
	}
	set, err := filter.Compile(&list, filter.PlatformWords, filter.PlatformBytes)
	if err != nil {
		return nil, err
	}
	said, fault := a.cfg.Said.RecentOfAll(r.Context(), previewTexts)
	return previewOf(set, said, fault)
}

func (a *API) previewRoomFilter(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	if err := a.asStaff(r, c, func(*room.Room) *protocol.Error { return nil }); err != nil {
		return nil, err
	}
	var list protocol.WordList
	if err := decodeUpTo(w, r, &list, maxRoomFilterBytes); err != nil {
		return nil, err
	}
	set, err := filter.Compile(&list, filter.RoomWords, filter.RoomBytes)
	if err != nil {
		return nil, err
	}
	said, fault := a.cfg.Said.Recent(r.Context(), c.room, previewTexts)
	return previewOf(set, said, fault)
}

// previewShield tells what a shield that looks for raids would have held.
func (a *API) previewShield(_ http.ResponseWriter, r *http.Request, c call) (any, error) {
	if err := a.asStaff(r, c, func(*room.Room) *protocol.Error { return nil }); err != nil {
		return nil, err
	}
	said, err := a.cfg.Said.Recent(r.Context(), c.room, previewTexts)
	if err != nil {
		return nil, storeError{fmt.Errorf("read what was said: %w", err)}
	}
	return room.PlayShield(said), nil
}

func previewOf(set *filter.Set, said [][]byte, fault error) (any, error) {
	if fault != nil {
		return nil, storeError{fmt.Errorf("read what was said: %w", fault)}
	}
	out := filterPreview{Words: set.Words(), Actions: map[protocol.FilterAction]int{}, Newest: []caught{}}
	for _, action := range protocol.FilterActions() {
		out.Actions[action] = 0
	}
	for i := len(said) - 1; i >= 0; i-- {
		var d protocol.Danmaku
		if json.Unmarshal(said[i], &d) != nil || d.MID == "" {
			continue // of a later version
		}
		out.Looked++
		hits := set.Hits(d.Text, nil)
		if len(hits) == 0 {
			continue
		}
		c := caught{MID: d.MID, User: d.User, Text: d.Text, TS: d.TS}
		c.Action, c.Word, c.Shown = filter.Judge(d.Text, hits)
		out.Caught++
		out.Actions[c.Action]++
		if len(out.Newest) < previewShown {
			out.Newest = append(out.Newest, c)
		}
	}
	return out, nil
}

// Bounds of a list in a request, the platform's and a room's: JSON takes more than the words.
const (
	maxFilterBytes     = 6 << 20
	maxRoomFilterBytes = 64 << 10
)
