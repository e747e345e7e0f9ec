package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"liveroom/internal/recent"
	"liveroom/room"
)

// Nodes asks the other nodes what their [API.Tell] says of the same question, and returns what comes in time.
type Nodes func(ctx context.Context, question Question, about string) [][]byte

// Question is what nodes ask one another for the API.
type Question uint8

// The questions.
const (
	AskRooms   Question = iota // the largest rooms
	AskRoom                    // one room, as its host sees it
	AskTraffic                 // what the limits decided lately
	AskPerson                  // what is known of a user in a room, asked as room/user
	AskPeople                  // who is in a room
)

// Tell answers another node's question with what this node knows by itself.
func (a *API) Tell(question Question, about string) ([]byte, error) {
	switch question {
	case AskRooms:
		return json.Marshal(a.roomsHere())
	case AskTraffic:
		return json.Marshal(a.cfg.Recent())
	case AskPerson:
		id, user, _ := strings.Cut(about, "/")
		p := room.Person{User: user}
		if r, ok := a.cfg.Hub.Room(id); ok {
			p = r.Person(user)
		}
		return json.Marshal(p)
	case AskPeople:
		var q peopleQuestion
		if err := json.Unmarshal([]byte(about), &q); err != nil {
			return nil, err
		}
		return json.Marshal(a.peopleHere(q))
	}
	var here roomHere
	if r, ok := a.cfg.Hub.Room(about); ok {
		info := r.Info()
		here = roomHere{Rates: info.Rates.TenSeconds, Minute: info.Rates.Minute, Refusals: info.Refusals}
	}
	return json.Marshal(here)
}

// ask returns what the other nodes answer, as far as it can be read.
func ask[T any](ctx context.Context, a *API, question Question, about string) []T {
	if a.cfg.Nodes == nil {
		return nil
	}
	var all []T
	for _, answer := range a.cfg.Nodes(ctx, question, about) {
		var there T
		if err := json.Unmarshal(answer, &there); err != nil {
			a.cfg.Log.Warn("another node's answer can't be read", "question", question, "about", about, "err", err)
			continue
		}
		all = append(all, there)
	}
	return all
}

// roomHere is what the nodes of one room know each for itself.
type roomHere struct {
	Rates    room.Rates     `json:"rates"`
	Minute   room.Rates     `json:"minute"`
	Refusals []room.Refused `json:"refusals"`
}

// roomsHere lists this node's largest rooms.
func (a *API) roomsHere() []listed {
	rooms := a.cfg.Hub.Rooms()
	out := make([]listed, 0, min(len(rooms), maxListed))
	for _, s := range rooms[:cap(out)] {
		out = append(out, listed{s, a.ratesOf(s.ID)})
	}
	return out
}

// listing is the list of all nodes' rooms. It is gathered at most once per listedFor, however many look at it.
type listing struct {
	turn chan struct{} // has one place; whoever holds it may look at the rest, and gather

	at    time.Time
	rooms []listed
}

// listedFor is how old a list of all nodes' rooms may be. A node that is alone gathers nothing and lists what is.
const listedFor = time.Second

// everywhere returns the rooms of all nodes, those with most sessions first.
func (a *API) everywhere(ctx context.Context) []listed {
	if a.cfg.Nodes == nil {
		return a.roomsHere()
	}
	l := &a.listing
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil
	}
	if time.Since(l.at) < listedFor {
		return l.rooms
	}
	l.rooms, l.at = joinRooms(append([][]listed{a.roomsHere()}, ask[[]listed](ctx, a, AskRooms, "")...)), time.Now()
	return l.rooms
}

// joinRooms makes one list of several nodes'. Each node counts a room's sessions and likes everywhere, a moment apart, so
// the largest is nearest; what a node has admitted it knows alone.
func joinRooms(lists [][]listed) []listed {
	byID := map[string]*listed{}
	for _, rooms := range lists {
		for _, r := range rooms {
			old := byID[r.ID]
			if old == nil {
				byID[r.ID] = &r
				continue
			}
			old.Online, old.People, old.Likes = max(old.Online, r.Online), max(old.People, r.People), max(old.Likes, r.Likes)
			old.Rates.Danmaku += r.Rates.Danmaku
			old.Rates.Gift += r.Rates.Gift
			old.Rates.Like += r.Rates.Like
		}
	}
	out := make([]listed, 0, len(byID))
	for _, r := range byID {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b listed) int {
		return cmp.Or(cmp.Compare(b.Online, a.Online), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// gather adds to a room's figures what the other nodes know of it.
func (a *API) gather(ctx context.Context, info *room.Info) {
	for _, there := range ask[roomHere](ctx, a, AskRoom, info.ID) {
		info.Rates.TenSeconds = info.Rates.TenSeconds.Plus(there.Rates)
		info.Rates.Minute = info.Rates.Minute.Plus(there.Minute)
		info.Refusals = append(info.Refusals, there.Refusals...)
	}
	slices.SortStableFunc(info.Refusals, func(a, b room.Refused) int { return cmp.Compare(a.AgeMS, b.AgeMS) })
	info.Refusals = info.Refusals[:min(len(info.Refusals), room.MaxRefusals)]
}

// traffic is the answer of GET /limits/traffic.
type traffic struct {
	At int64 `json:"at"` // when the newest step was asked for, in Unix milliseconds of this node
	recent.Traffic
}

func (a *API) trafficCalls() []route {
	return []route{
		{http.MethodGet, "/limits/traffic", speaks, a.getTraffic},
	}
}

// getTraffic tells what the limits of all nodes decided lately, and whom they refused most.
func (a *API) getTraffic(_ http.ResponseWriter, r *http.Request, _ call) (any, error) {
	all := append([]recent.Traffic{a.cfg.Recent()}, ask[recent.Traffic](r.Context(), a, AskTraffic, "")...)
	return traffic{At: time.Now().UnixMilli(), Traffic: recent.Merge(all...)}, nil
}
