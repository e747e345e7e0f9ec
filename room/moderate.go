package room

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// moderate does what a host or moderator asks. It returns once the change is stored, and so holds on every node and
// over restarts, or, for kick and announce, once it is on its way to every node.
func (r *Room) moderate(ctx context.Context, by *Speaker, req *protocol.Request) protocol.Ack {
	err := r.barsModerator(by.who)
	if err == nil {
		err = r.outranked(by.who, req)
	}
	if err != nil {
		return protocol.Refuse(req.ID, err)
	}
	switch req.Action {
	case protocol.ActionKick:
		err = r.command(command{Kick: req.User, Role: by.who.Role})
	case protocol.ActionAnnounce:
		var text string
		if text, err = protocol.CleanText(req.Text, r.hub.cfg.MaxText); err == nil {
			err = r.command(command{Announce: text})
		}
	default:
		err = r.change(ctx, func(s *stored, now int64) *protocol.Error { return r.amend(s, now, by, req) })
	}
	if err != nil {
		return protocol.Refuse(req.ID, err)
	}
	r.hub.cfg.Metrics.messages[protocol.ClassControl].Inc()
	r.Audit(ctx, AuditEntry{
		By: by.who.User, Role: by.who.Role, Action: string(req.Action),
		User: req.User, Seconds: req.Seconds, Reason: clipReason(req.Reason), MID: req.MID, Text: req.Text,
	})
	r.hub.cfg.Log.Info("moderated", "room", r.id, "action", string(req.Action), "by", by.who.User, "user", req.User)
	return protocol.Ack{ID: req.ID, Code: protocol.OK, TS: r.hub.cfg.Now().UnixMilli()}
}

// amend writes one action into the settings. now is Unix ms.
func (r *Room) amend(s *stored, now int64, by *Speaker, req *protocol.Request) *protocol.Error {
	mine := Sanction{User: req.User, By: by.who.User, Role: by.who.Role, Reason: clipReason(req.Reason)}
	if req.Seconds > 0 {
		mine.Until = now + int64(req.Seconds)*1000
	}
	var err *protocol.Error
	switch req.Action {
	case protocol.ActionMute:
		s.Mutes, err = sanctioned(s.Mutes, mine)
	case protocol.ActionUnmute:
		s.Mutes = without(s.Mutes, req.User)
	case protocol.ActionBan:
		s.Bans, err = sanctioned(s.Bans, mine)
	case protocol.ActionUnban:
		s.Bans = without(s.Bans, req.User)
	case protocol.ActionSlowMode:
		s.SlowMode = int64(req.Seconds) * 1000
	case protocol.ActionClose, protocol.ActionOpen:
		s.Closed = req.Action == protocol.ActionClose
	case protocol.ActionDelete:
		s.Deleted = append(s.Deleted, deletion{req.MID, now})
		if protocol.EventMID(s.Pinned) == req.MID {
			s.Pinned = nil
		}
	case protocol.ActionUnpin:
		s.Pinned = nil
	case protocol.ActionPin:
		if s.Pinned = r.find(req.MID); s.Pinned == nil {
			err = &protocol.Error{Reason: protocol.ReasonNotFound, Detail: "mid: only a message of the last minutes can be pinned"}
		}
	default:
		err = protocol.BadField("action", "an action of the protocol", string(req.Action))
	}
	return err
}

// find returns the event of a recent message.
func (r *Room) find(mid string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history.find(mid)
}

// clipReason keeps what a moderator gives as a reason short; a text that can't be shown is left out.
func clipReason(reason string) string {
	text, err := protocol.CleanText(reason, protocol.MaxTextGraphemes)
	if err != nil {
		return ""
	}
	return text
}

func without(list []Sanction, user string) []Sanction {
	return slices.DeleteFunc(list, func(s Sanction) bool { return s.User == user })
}

func sanctioned(list []Sanction, s Sanction) ([]Sanction, *protocol.Error) {
	list = without(list, s.User)
	if len(list) >= maxSanctions {
		return list, &protocol.Error{Reason: protocol.ReasonUnavailable, Detail: "the room's list is full"}
	}
	return append(list, s), nil
}

// changeAttempts is how often a change is tried against others who change the same room.
const changeAttempts = 8

// change stores settings that edit has worked out from those in force, however many nodes change the room at once.
func (r *Room) change(ctx context.Context, edit func(s *stored, now int64) *protocol.Error) *protocol.Error {
	ctx, cancel := context.WithTimeout(ctx, r.hub.cfg.OpenTimeout)
	defer cancel()
	later := &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(openRetry)}
	for range changeAttempts {
		p := r.policy.Load()
		now := r.hub.cfg.Now().UnixMilli()
		s := p.stored.clone()
		s.prune(now)
		if err := edit(&s, now); err != nil {
			return err
		}
		value, err := json.Marshal(s)
		if err != nil {
			r.hub.troubled("settings do not encode", r.id, err)
			return &protocol.Error{Reason: protocol.ReasonInternal}
		}
		if len(value) > maxSettings {
			return &protocol.Error{Reason: protocol.ReasonUnavailable, Detail: "the room's lists are full"}
		}
		revision, err := r.hub.bus.PutSettings(ctx, r.id, value, p.revision)
		switch {
		case err == nil:
			r.adopt(value, revision)
			return nil
		case !errors.Is(err, ErrConflict):
			r.hub.troubled("settings are not stored", r.id, err)
			return later
		}
		if err := r.catchUp(ctx); err != nil {
			r.hub.troubled("settings can't be loaded", r.id, err)
			return later
		}
	}
	return later
}

// catchUp reads the settings that somebody else has stored.
func (r *Room) catchUp(ctx context.Context) error {
	value, revision, err := r.hub.bus.Settings(ctx, r.id)
	if err != nil {
		return err
	}
	r.adopt(value, revision)
	return nil
}

// SetTitle stores the room's title, cleaned like a danmaku; "" removes it.
func (r *Room) SetTitle(ctx context.Context, title string) *protocol.Error {
	if title != "" {
		clean, err := protocol.CleanText(title, protocol.MaxTextGraphemes)
		if err != nil {
			return err
		}
		title = clean
	}
	return r.change(ctx, func(s *stored, _ int64) *protocol.Error {
		s.Title = title
		return nil
	})
}

// SetSlowMode stores the least time between two danmaku of one viewer, 0 to protocol.MaxSlowMode.
func (r *Room) SetSlowMode(ctx context.Context, d time.Duration) *protocol.Error {
	if d < 0 || d > protocol.MaxSlowMode {
		return protocol.BadField("slow_mode_ms", "0 to "+protocol.MaxSlowMode.String(), d.String())
	}
	return r.change(ctx, func(s *stored, _ int64) *protocol.Error {
		s.SlowMode = d.Milliseconds()
		return nil
	})
}

// SetClosed stores whether the room takes messages.
func (r *Room) SetClosed(ctx context.Context, closed bool) *protocol.Error {
	return r.change(ctx, func(s *stored, _ int64) *protocol.Error {
		s.Closed = closed
		return nil
	})
}
