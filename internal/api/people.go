package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"liveroom/protocol"
	"liveroom/room"
	"liveroom/room/people"
)

// maxPeople is how many persons a page has at most.
const maxPeople = 200

func (a *API) peopleCalls() []route {
	return []route{
		{http.MethodGet, "/rooms/{room}/people", knows, a.listPeople},
		{http.MethodGet, "/rooms/{room}/summary", knows, a.getSummary},
	}
}

// peoplePage is a page of who is in a room.
type peoplePage struct {
	Now      int            `json:"now"`      // persons
	Sessions int            `json:"sessions"` // their windows
	Show     *shownShow     `json:"show,omitempty"`
	People   []room.Visitor `json:"people"`
	Next     string         `json:"next,omitempty"` // goes on behind it; absent: there are no more
}

// shownShow is a show as hosts see it. Times are Unix ms.
type shownShow struct {
	Begin   int64 `json:"begin"`
	End     int64 `json:"end,omitempty"`
	People  int   `json:"people"`
	Exact   bool  `json:"exact"`
	Peak    int   `json:"peak"`
	PeakAt  int64 `json:"peak_at,omitempty"`
	Minutes []int `json:"people_by_minute,omitempty"`
}

func showOf(t people.Told, minutes bool) *shownShow {
	s := &shownShow{Begin: t.Begin, End: t.End, People: t.People, Exact: t.Exact, Peak: t.Peak, PeakAt: t.PeakAt}
	for _, m := range t.Minutes {
		if minutes {
			s.Minutes = append(s.Minutes, m.People)
		}
	}
	return s
}

// peopleQuestion asks a node for persons: those behind a place, or some of them.
type peopleQuestion struct {
	Room  string   `json:"room"`
	After string   `json:"after,omitempty"`
	Most  int      `json:"most,omitempty"`
	Of    []string `json:"of,omitempty"`
}

func (a *API) listPeople(_ http.ResponseWriter, r *http.Request, c call) (any, error) {
	most, fault := number(r, "limit", 1, maxPeople, 50)
	if fault != nil {
		return nil, fault
	}
	q := peopleQuestion{Room: c.room, After: r.URL.Query().Get("after"), Most: int(most)}
	if _, ok := room.ParseStanding(q.After); q.After != "" && !ok {
		return nil, protocol.BadField("after", "what next named", q.After)
	}
	var out peoplePage
	err := a.asStaff(r, c, func(rm *room.Room) *protocol.Error {
		s := rm.Summary()
		out.Now, out.Sessions = s.People, s.Online
		if shows := rm.Census().Shows(); len(shows) > 0 && q.After == "" {
			out.Show = showOf(shows[0], true)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.People, out.Next = a.peoplePage(r.Context(), q)
	return out, nil
}

// peoplePage gathers a page from all nodes. Each lists its own; whoever has windows on several stands where the newest of them puts him, and
// is left out of pages behind that.
func (a *API) peoplePage(ctx context.Context, q peopleQuestion) (page []room.Visitor, next string) {
	for _, there := range a.askPeople(ctx, q) {
		page = append(page, there...)
	}
	order := func(x, y room.Visitor) int { return x.Standing().Compare(y.Standing()) }
	slices.SortFunc(page, order)
	page = page[:min(len(page), q.Most)]
	if len(page) == q.Most {
		next = page[len(page)-1].Standing().String()
	}
	of := make([]string, len(page))
	for i, p := range page {
		of[i] = p.ID
	}
	every := map[string]room.Visitor{}
	for _, there := range a.askPeople(ctx, peopleQuestion{Room: q.Room, Of: of}) {
		for _, p := range there {
			every[p.ID] = both(every[p.ID], p)
		}
	}
	seen := map[string]bool{}
	page = slices.DeleteFunc(page, func(p room.Visitor) bool {
		whole, there := every[p.ID]
		again := seen[p.ID] || there && order(whole, p) < 0 // on this page, or on one before
		seen[p.ID] = true
		return again
	})
	for i, p := range page {
		if whole, there := every[p.ID]; there { // else gone meanwhile
			page[i] = whole
		}
	}
	return append([]room.Visitor{}, page...), next
}

// both is one person on two nodes: as the one says that stands first, with the windows of both.
func both(a, b room.Visitor) room.Visitor {
	if a.Sessions == 0 {
		return b
	}
	n := a.Sessions + b.Sessions
	if b.Standing().Compare(a.Standing()) < 0 {
		a = b
	}
	a.Sessions = n
	return a
}

// askPeople asks all nodes, this one included.
func (a *API) askPeople(ctx context.Context, q peopleQuestion) [][]room.Visitor {
	if q.Most == 0 && len(q.Of) == 0 {
		return nil
	}
	about, _ := json.Marshal(q) // texts and numbers
	return append([][]room.Visitor{a.peopleHere(q)}, ask[[]room.Visitor](ctx, a, AskPeople, string(about))...)
}

// peopleHere answers with the persons of this node.
func (a *API) peopleHere(q peopleQuestion) []room.Visitor {
	r, ok := a.cfg.Hub.Room(q.Room)
	switch {
	case !ok:
		return []room.Visitor{}
	case len(q.Of) > 0:
		return r.VisitorsOf(q.Of[:min(len(q.Of), maxPeople)])
	}
	var after *room.Standing
	if s, ok := room.ParseStanding(q.After); ok {
		after = &s
	}
	return r.Visitors(after, cmp.Or(min(q.Most, maxPeople), maxPeople))
}
