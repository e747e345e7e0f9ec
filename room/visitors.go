package room

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"liveroom/protocol"
)

// Visitor is somebody who is in a room, with all windows there.
type Visitor struct {
	ID       string         `json:"id"`
	Name     string         `json:"name"`
	Role     protocol.Role  `json:"role"`
	Attrs    protocol.Attrs `json:"attrs,omitempty"`
	Since    int64          `json:"since"`    // when the newest window came, Unix ms
	Sessions int            `json:"sessions"` // windows
}

// Standing is a person's place in a list: staff first, then the newest.
type Standing struct {
	rank  rank
	since int64
	id    string
}

// Standing returns the person's place.
func (p Visitor) Standing() Standing { return Standing{rankOf(p.Role), p.Since, p.ID} }

// Compare is negative when s stands before o.
func (s Standing) Compare(o Standing) int {
	return cmp.Or(cmp.Compare(o.rank, s.rank), cmp.Compare(o.since, s.since), cmp.Compare(s.id, o.id))
}

// String is what [ParseStanding] reads.
func (s Standing) String() string {
	return strconv.Itoa(int(s.rank)) + "." + strconv.FormatInt(s.since, 36) + "." + s.id
}

// ParseStanding reads a place; false: it is none.
func ParseStanding(text string) (s Standing, ok bool) {
	parts := strings.SplitN(text, ".", 3)
	if len(parts) != 3 {
		return s, false
	}
	r, err := strconv.Atoi(parts[0])
	since, fault := strconv.ParseInt(parts[1], 36, 64)
	return Standing{rank(r), since, parts[2]}, err == nil && fault == nil
}

// Visitors returns those on this node that stand behind a place (nil: all), in their order, at most so many.
func (r *Room) Visitors(after *Standing, most int) []Visitor {
	all := r.visitors(func(*Member) bool { return true })
	if after != nil {
		all = slices.DeleteFunc(all, func(p Visitor) bool { return p.Standing().Compare(*after) <= 0 })
	}
	slices.SortFunc(all, func(a, b Visitor) int { return a.Standing().Compare(b.Standing()) })
	return all[:min(len(all), most)]
}

// VisitorsOf returns those of some users who are on this node.
func (r *Room) VisitorsOf(users []string) []Visitor {
	asked := make(map[string]bool, len(users))
	for _, id := range users {
		asked[id] = true
	}
	return r.visitors(func(m *Member) bool { return asked[m.user.id] })
}

// visitors gathers members by user.
func (r *Room) visitors(match func(*Member) bool) []Visitor {
	members := r.audience.Where(match)
	at := make(map[*User]int, len(members))
	out := make([]Visitor, 0, len(members))
	for _, m := range members {
		who, since := m.who.Load(), m.since
		i, known := at[m.user]
		if !known {
			i = len(out)
			at[m.user], out = i, append(out, Visitor{ID: who.User, Role: protocol.RoleViewer})
		}
		p := &out[i]
		p.Sessions++
		if rankOf(who.Role) > rankOf(p.Role) {
			p.Role = who.Role
		}
		if since >= p.Since {
			p.Since, p.Name, p.Attrs = since, who.Name, who.Attrs
		}
	}
	return out
}
