package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"liveroom/protocol"
	"liveroom/room"
)

// Held reads what waits for staff.
type Held interface {
	// HeldOf returns at most limit (1 to 1000) of the room's held messages with a Seq above after, in order, decided ones among them.
	HeldOf(ctx context.Context, room string, after uint64, limit int) ([]HeldRecord, error)
}

// HeldRecord is a stored [protocol.Held].
type HeldRecord struct {
	Seq   uint64
	Value []byte
}

func (a *API) heldCalls() []route {
	return []route{
		{http.MethodGet, "/rooms/{room}/held", knows, a.listHeld},
		{http.MethodPost, "/rooms/{room}/held/{mid}", knows, a.postHeld},
	}
}

// heldPage is a part of what waits.
type heldPage struct {
	Held []json.RawMessage `json:"held"`
	Next uint64            `json:"next,omitempty"` // goes on behind it; absent: that was all
}

func (a *API) listHeld(_ http.ResponseWriter, r *http.Request, c call) (any, error) {
	after, limit, err := page(r, "after", maxListed, defaultListed)
	if err != nil {
		return nil, err
	}
	all, err := truth(r, "decided")
	if err != nil {
		return nil, err
	}
	if err := a.asStaff(r, c, func(*room.Room) *protocol.Error { return nil }); err != nil {
		return nil, err
	}
	out := heldPage{Held: []json.RawMessage{}}
	for {
		got, err := a.cfg.Held.HeldOf(r.Context(), c.room, after, maxListed)
		if err != nil {
			return nil, storeError{fmt.Errorf("read held messages: %w", err)}
		}
		for _, k := range got {
			if m, err := protocol.ParseHeld(k.Value); err != nil || !all && m.State != protocol.HeldWaiting {
				continue // what a later version writes may be another thing
			}
			if len(out.Held) == limit {
				out.Next = after
				return out, nil
			}
			out.Held, after = append(out.Held, k.Value), k.Seq
		}
		if len(got) == 0 {
			return out, nil
		}
		after = got[len(got)-1].Seq
	}
}

type heldBody struct {
	ID     string          `json:"id"`
	Action protocol.Action `json:"action"`
	Reason string          `json:"reason"`
}

// postHeld is the act of moderation, by a road of its own.
func (a *API) postHeld(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	var b heldBody
	if err := decode(w, r, &b); err != nil {
		return nil, err
	}
	if b.Action != protocol.ActionRelease && b.Action != protocol.ActionDrop {
		return nil, protocol.BadField("action", "release or drop", string(b.Action))
	}
	return a.moderate(r, c, &protocol.Request{ID: b.ID, Action: b.Action, Reason: b.Reason, MID: r.PathValue("mid")}), nil
}
