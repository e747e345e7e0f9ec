package room

import (
	"context"
	"slices"

	"liveroom/internal/filter"
	"liveroom/protocol"
)

// judged is what the lists of words ask for; the zero value asks for nothing.
type judged struct {
	action protocol.FilterAction
	word   string
}

// Filter puts the platform's list into force; nil: there is none.
func (h *Hub) Filter(s *filter.Set) { h.words.Store(s) }

// filtered looks a clean text up in the platform's list and the room's, and puts stars in it. The room's is not for those who moderate there.
func (r *Room) filtered(p *policy, who *Identity, req *protocol.Request) (judged, *protocol.Error) {
	var few [8]filter.Hit
	hits := r.hub.words.Load().Hits(req.Text, few[:0])
	if !mayModerate(who.Role) {
		hits = p.words.Hits(req.Text, hits)
	}
	if len(hits) == 0 {
		return judged{}, nil
	}
	var j judged
	j.action, j.word, req.Text = filter.Judge(req.Text, hits)
	r.hub.cfg.Metrics.filtered[j.action].Inc()
	if j.action == protocol.FilterRefuse {
		return j, &protocol.Error{Reason: protocol.ReasonFiltered}
	}
	return j, nil
}

// held is a danmaku for staff to decide on.
func (r *Room) held(by *Speaker, req *protocol.Request, ts int64, j judged) protocol.Ack {
	m := protocol.Said{MID: r.hub.cfg.MIDs.Next(), User: by.who.shown(), TS: ts, Request: req}
	return r.withhold(context.Background(), by, m, Cause{By: "filter", Detail: j.word}) // kept also when its sender leaves
}

// filter is the room's list, for people.
func (s *stored) filter() protocol.WordList {
	if s.Filter == nil {
		return protocol.WordList{Words: []protocol.Word{}}
	}
	return *s.Filter
}

// compiled is the room's own list, taken over from a policy that has the same one.
func (s *stored) compiled(before *policy) (*filter.Set, *protocol.Error) {
	if before != nil && s.sameWords(before.Filter) {
		return before.words, nil
	}
	return filter.Compile(s.Filter, filter.RoomWords, filter.RoomBytes)
}

func (s *stored) sameWords(as *protocol.WordList) bool {
	if s.Filter == nil || as == nil {
		return s.Filter == as
	}
	return s.Filter.Traditional == as.Traditional && s.Filter.Pinyin == as.Pinyin && slices.Equal(s.Filter.Words, as.Words)
}

// Tried is what would become of a text in a room, and why.
type Tried struct {
	Folded string                `json:"folded"`          // as the platform's list folds it
	Sound  string                `json:"sound,omitempty"` // how it sounds, where a list asks for it
	Hits   []filter.Hit          `json:"hits"`
	Action protocol.FilterAction `json:"action,omitempty"` // none: it is shown
	Shown  string                `json:"shown"`
}

// Try tells what the lists in force, and in place of the room's another one where set is not nil, would make of a text.
func (r *Room) Try(text string, set *filter.Set) (t Tried, err *protocol.Error) {
	if text, err = protocol.CleanText(text, r.hub.cfg.MaxText); err != nil {
		return t, err
	}
	if set == nil {
		set = r.policy.Load().words
	}
	return r.hub.try(text, set), nil
}

func (h *Hub) try(text string, own *filter.Set) (t Tried) {
	words := h.words.Load()
	t.Folded, t.Sound = words.Folded(text)
	if _, sound := own.Folded(text); t.Sound == "" {
		t.Sound = sound
	}
	t.Hits = own.Hits(text, words.Hits(text, []filter.Hit{}))
	t.Action, _, t.Shown = filter.Judge(text, t.Hits)
	return t
}

// Try is [Room.Try] for a text of no room, with a list in place of the platform's where set is not nil.
func (h *Hub) Try(text string, set *filter.Set) (t Tried, err *protocol.Error) {
	if text, err = protocol.CleanText(text, h.cfg.MaxText); err != nil {
		return t, err
	}
	if set == nil {
		set = h.words.Load()
	}
	t.Folded, t.Sound = set.Folded(text)
	t.Hits = set.Hits(text, []filter.Hit{})
	t.Action, _, t.Shown = filter.Judge(text, t.Hits)
	return t, nil
}
