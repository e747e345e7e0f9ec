package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"liveroom/protocol"
	"liveroom/room"
)

// Bounds of a list.
const (
	defaultListed = 100
	maxListed     = 1000
)

func (a *API) roomCalls() []route {
	return []route{
		{http.MethodGet, "/rooms", a.enters, a.listRooms},
		{http.MethodGet, "/rooms/{room}", a.enters, a.getRoom},
		{http.MethodPut, "/rooms/{room}", moderates, a.putRoom},
	}
}

func (a *API) listRooms(_ http.ResponseWriter, r *http.Request, c call) (any, error) {
	limit, err := number(r, "limit", 1, maxListed, defaultListed)
	if err != nil {
		return nil, err
	}
	out := struct {
		Rooms []listed `json:"rooms"`
	}{Rooms: []listed{}}
	for _, room := range a.everywhere(r.Context()) {
		if c.known && !c.Allows(room.ID) {
			continue
		}
		if uint64(len(out.Rooms)) == limit {
			break
		}
		out.Rooms = append(out.Rooms, room)
	}
	return out, nil
}

func (a *API) getRoom(_ http.ResponseWriter, r *http.Request, c call) (any, error) {
	return a.withRoom(r, c, notCreated, func(*room.Room) *protocol.Error { return nil })
}

// notCreated keeps a call that only looks from making a room.
func notCreated() *protocol.Error {
	return &protocol.Error{Reason: protocol.ReasonNotFound, Detail: "room"}
}

func (a *API) putRoom(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	var s room.Settings
	if err := decode(w, r, &s); err != nil {
		return nil, err
	}
	return a.withRoom(r, c, nil, func(rm *room.Room) *protocol.Error {
		if err := rm.MayModerate(c.identity()); err != nil {
			return err
		}
		if err := rm.Change(r.Context(), s); err != nil {
			return err
		}
		rm.Audit(r.Context(), room.AuditEntry{By: c.User, Role: c.Role, Action: "settings", Text: settingsText(s)})
		return nil
	})
}

// settingsText tells what was set, for the audit.
func settingsText(s room.Settings) string {
	var said []string
	if s.Title != nil {
		said = append(said, fmt.Sprintf("title %q", *s.Title))
	}
	if s.SlowModeMS != nil {
		said = append(said, fmt.Sprintf("slow_mode_ms %d", *s.SlowModeMS))
	}
	if s.Closed != nil {
		said = append(said, fmt.Sprintf("closed %t", *s.Closed))
	}
	return strings.Join(said, ", ")
}

// withRoom returns the room after f, as much of it as the caller may see.
func (a *API) withRoom(r *http.Request, c call, create func() *protocol.Error, f func(*room.Room) *protocol.Error) (any, error) {
	var info room.Info
	err := a.cfg.Hub.With(r.Context(), c.room, create, func(rm *room.Room) *protocol.Error {
		if err := f(rm); err != nil {
			return err
		}
		info = rm.Info()
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case reads(c.caller, c.room):
		a.gather(r.Context(), &info)
		return a.detail(info), nil
	}
	return seen{listed{info.Summary, shown(info.Rates.TenSeconds)}, info.SlowModeMS, info.Pinned}, nil
}

// rates are what viewers may know of a room's pace: admitted per second, over the last ten seconds.
type rates struct {
	Danmaku float64 `json:"danmaku"`
	Gift    float64 `json:"gift"`
	Like    float64 `json:"like"`
}

func shown(r room.Rates) rates { return rates{r.Danmaku, r.Gift, r.Like} }

// listed is a room in a list.
type listed struct {
	room.Summary
	Rates rates `json:"rates"`
}

// seen is a room as anybody sees it.
type seen struct {
	listed
	SlowModeMS int64           `json:"slow_mode_ms"`
	Pinned     json.RawMessage `json:"pinned"`
}

// detailed is a room as those see it who read or moderate it.
type detailed struct {
	room.Info
	Rates allRates `json:"rates"`
	Quota []quota  `json:"quota"`
}

// allRates adds what was not admitted.
type allRates struct {
	rates
	Degraded float64 `json:"degraded"`
	Refused  float64 `json:"refused"`
}

// quota is one of the room's buckets, with the pace at which it fills.
type quota struct {
	room.Quota
	PerSecond float64 `json:"per_second"`
}

func (a *API) detail(i room.Info) detailed {
	r := i.Rates.TenSeconds
	d := detailed{Info: i, Rates: allRates{shown(r), r.Degraded, r.Refused}, Quota: make([]quota, len(i.Quota))}
	for n, q := range i.Quota {
		d.Quota[n] = quota{q, a.perSecond(q)}
	}
	return d
}

// perSecond is how fast a bucket fills at the size of audience that its burst belongs to.
func (a *API) perSecond(q room.Quota) float64 {
	rule, ok := a.cfg.Gate.Rules().Rule(q.Rule)
	if !ok {
		return 0
	}
	l := rule.Limit
	for _, tier := range rule.Tiers {
		if l = tier.Limit; l.Burst == q.Burst {
			break
		}
	}
	per := time.Duration(l.Per)
	if per == 0 {
		per = time.Second
	}
	return float64(l.Rate) / per.Seconds()
}

func (a *API) ratesOf(id string) rates {
	r, ok := a.cfg.Hub.Room(id)
	if !ok {
		return rates{}
	}
	return shown(r.Rates())
}
