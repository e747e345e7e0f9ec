package recent

import (
	"cmp"
	"slices"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
)

// TopUsers is how many users are told of at most.
const TopUsers = 50

const (
	minute = time.Minute
	// watched is how many users are counted in a minute. Who is refused more than a 128th of the minute's refusals is among
	// them, and counted too high by no more than that.
	watched = 128
)

// Refused is a user and how often limits refused or degraded what it sent, with the last of it.
type Refused struct {
	User     string `json:"user"`
	Refused  int64  `json:"refused"`
	Degraded int64  `json:"degraded"`
	Room     string `json:"room,omitempty"`
	Action   string `json:"action"`
	Rule     string `json:"rule"`
}

func (r Refused) weight() int64 { return r.Refused + r.Degraded }

// plus adds another count of the same user; the last of either stays.
func (r Refused) plus(o Refused) Refused {
	o.Refused, o.Degraded = o.Refused+r.Refused, o.Degraded+r.Degraded
	return o
}

// most returns the users with the most refusals.
func most(users map[string]Refused) []Refused {
	out := make([]Refused, 0, len(users))
	for _, u := range users {
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b Refused) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Degraded, a.Degraded), cmp.Compare(a.User, b.User))
	})
	return out[:min(len(out), TopUsers)]
}

// Top finds who is refused most: Space-Saving (Metwally et al., 2005) once a minute. It is a [limit.Observer].
type Top struct {
	mu      lock.Mutex[lock.Leaf]
	minutes [int(Window/minute) + 1]struct {
		number int64 // which minute since the clock began, plus 1; 0: none yet
		users  map[string]*Refused
	}
}

var _ limit.Observer = (*Top)(nil)

// Observe implements [limit.Observer]. Requests without a user, and frames, which everything else follows, count for
// nobody.
func (t *Top) Observe(o limit.Observed) {
	v := o.Decision.Verdict
	if v != limit.Reject && v != limit.Degrade || o.Request.User == "" || o.Request.Action == limit.Frame {
		return
	}
	number := int64(o.Now)/int64(minute) + 1
	t.mu.Lock()
	defer t.mu.Unlock()
	m := &t.minutes[number%int64(len(t.minutes))]
	if m.number != number {
		if m.number > number {
			return // an old reading
		}
		m.number, m.users = number, make(map[string]*Refused, watched)
	}
	u := m.users[o.Request.User]
	if u == nil {
		u = &Refused{User: o.Request.User}
		if len(m.users) >= watched {
			least := lightest(m.users)
			delete(m.users, least.User)
			u.Refused, u.Degraded = least.Refused, least.Degraded
		}
		m.users[u.User] = u
	}
	u.Room, u.Action, u.Rule = o.Request.Room, o.Request.Action.String(), o.Decision.Rule
	if v == limit.Reject {
		u.Refused++
	} else {
		u.Degraded++
	}
}

func lightest(users map[string]*Refused) *Refused {
	var least *Refused
	for _, u := range users {
		if least == nil || u.weight() < least.weight() {
			least = u
		}
	}
	return least
}

// Users tells who was refused most within the last [Window].
func (t *Top) Users(now limit.Instant) []Refused {
	newest := int64(now)/int64(minute) + 1
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := map[string]Refused{}
	for number := newest - int64(Window/minute) + 1; number <= newest; number++ {
		m := &t.minutes[max(number, 0)%int64(len(t.minutes))]
		if number < 1 || m.number != number {
			continue
		}
		for name, u := range m.users {
			sum[name] = sum[name].plus(*u)
		}
	}
	return most(sum)
}
