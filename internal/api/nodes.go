package api

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

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
)

// Tell answers another node's question with what this node knows by itself.
func (a *API) Tell(question Question, about string) ([]byte, error) {
	switch question {
	case AskRooms:
		return json.Marshal(a.roomsHere())
	case AskTraffic:
		return json.Marshal(a.recent())
	}
	var here roomHere
	if r, ok := a.hub.Room(about); ok {
		info := r.Info()
		here = roomHere{Rates: info.Rates.TenSeconds, Minute: info.Rates.Minute, Refusals: info.Refusals}
	}
	return json.Marshal(here)
}

// roomHere is what the nodes of one room know each for itself.
type roomHere struct {
	Rates    room.Rates     `json:"rates"`
	Minute   room.Rates     `json:"minute"`
	Refusals []room.Refused `json:"refusals"`
}

// roomsHere lists this node's largest rooms.
func (a *API) roomsHere() []listed {
	rooms := a.hub.Rooms()
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
	if a.nodes == nil {
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
	lists := [][]listed{a.roomsHere()}
	for _, answer := range a.nodes(ctx, AskRooms, "") {
		var rooms []listed
		if err := json.Unmarshal(answer, &rooms); err != nil {
			a.log.Warn("another node's rooms can't be read", "err", err)
			continue
		}
		lists = append(lists, rooms)
	}
	l.rooms, l.at = joinRooms(lists), time.Now()
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
			old.Online, old.Likes = max(old.Online, r.Online), max(old.Likes, r.Likes)
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
	if a.nodes == nil {
		return
	}
	for _, answer := range a.nodes(ctx, AskRoom, info.ID) {
		var there roomHere
		if err := json.Unmarshal(answer, &there); err != nil {
			a.log.Warn("another node's view of a room can't be read", "room", info.ID, "err", err)
			continue
		}
		info.Rates.TenSeconds = info.Rates.TenSeconds.Plus(there.Rates)
		info.Rates.Minute = info.Rates.Minute.Plus(there.Minute)
		info.Refusals = append(info.Refusals, there.Refusals...)
	}
	slices.SortStableFunc(info.Refusals, func(a, b room.Refused) int { return cmp.Compare(a.AgeMS, b.AgeMS) })
	info.Refusals = info.Refusals[:min(len(info.Refusals), room.MaxRefusals)]
}
