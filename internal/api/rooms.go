package api

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
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

func (a *API) listRooms(w http.ResponseWriter, r *http.Request, c call) {
	limit, err := number(r, "limit", 1, maxListed, defaultListed)
	if err != nil {
		a.refuse(w, r, err)
		return
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
	a.write(w, r, out)
}

func (a *API) getRoom(w http.ResponseWriter, r *http.Request, c call) {
	a.withRoom(w, r, c, notCreated, func(*room.Room) *protocol.Error { return nil })
}

// notCreated keeps a call that only looks from making a room.
func notCreated() *protocol.Error {
	return &protocol.Error{Reason: protocol.ReasonNotFound, Detail: "room"}
}

// settings are what PUT changes; a field that is left out stays as it is.
type settings struct {
	Title      *string `json:"title"`
	SlowModeMS *int64  `json:"slow_mode_ms"`
	Closed     *bool   `json:"closed"`
}

func (a *API) putRoom(w http.ResponseWriter, r *http.Request, c call) {
	var s settings
	if err := decode(w, r, &s); err != nil {
		a.refuse(w, r, err)
		return
	}
	a.withRoom(w, r, c, nil, func(rm *room.Room) *protocol.Error {
		if err := rm.MayModerate(room.Identity{User: c.User, Role: c.Role}); err != nil {
			return err
		}
		if err := s.apply(r, rm); err != nil {
			return err
		}
		rm.Audit(r.Context(), room.AuditEntry{By: c.User, Role: c.Role, Action: "settings", Text: s.String()})
		return nil
	})
}

// String tells what was set, for the audit.
func (s *settings) String() string {
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

func (s *settings) apply(r *http.Request, rm *room.Room) *protocol.Error {
	if s.SlowModeMS != nil {
		if err := rm.SetSlowMode(r.Context(), time.Duration(*s.SlowModeMS)*time.Millisecond); err != nil {
			return err
		}
	}
	if s.Closed != nil {
		if err := rm.SetClosed(r.Context(), *s.Closed); err != nil {
			return err
		}
	}
	title := rm.Info().Title
	if s.Title != nil {
		title = *s.Title
	}
	return rm.SetTitle(r.Context(), title) // also without a title: a room that was PUT stays known
}

// withRoom answers with the room after f, as much of it as the caller may see.
func (a *API) withRoom(w http.ResponseWriter, r *http.Request, c call, create func() *protocol.Error, f func(*room.Room) *protocol.Error) {
	var info room.Info
	err := a.hub.With(r.Context(), c.room, create, func(rm *room.Room) *protocol.Error {
		if err := f(rm); err != nil {
			return err
		}
		info = rm.Info()
		return nil
	})
	switch {
	case err != nil:
		a.refuse(w, r, err)
	case reads(c.caller, c.room):
		a.gather(r.Context(), &info)
		a.write(w, r, a.detail(info))
	default:
		a.write(w, r, seen{listed{info.Summary, shown(info.Rates.TenSeconds)}, info.SlowModeMS, info.Pinned})
	}
}

// number reads a query parameter as a whole number from least to most.
func number(r *http.Request, name string, least, most, otherwise uint64) (uint64, *protocol.Error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, protocol.BadField(name, strconv.FormatUint(least, 10)+" to "+strconv.FormatUint(most, 10), text)
	}
	return n, nil
}

// page reads where a page of a list begins and how long it is, and refuses what it can't read.
func (a *API) page(w http.ResponseWriter, r *http.Request, cursor string) (from uint64, limit int, ok bool) {
	from, err := number(r, cursor, 0, math.MaxInt64, 0)
	most := uint64(0)
	if err == nil {
		most, err = number(r, "limit", 1, maxListed, defaultListed)
	}
	if err != nil {
		a.refuse(w, r, err)
		return 0, 0, false
	}
	return from, int(most), true
}
