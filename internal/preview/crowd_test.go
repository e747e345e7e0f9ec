package preview

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"liveroom/limit"
)

// crowd is a simulated room in front of a real gate that a Recorder looks on at.
type crowd struct {
	t       testing.TB
	gate    *limit.Gate
	rec     *Recorder
	now     limit.Instant
	rand    *rand.Rand
	viewers []*viewer
	rooms   map[string]*limit.Subject
}

type viewer struct {
	name, role string
	user       limit.Subject
	seats      map[string]*limit.Subject
	conns      []*limit.Subject
	traits     *limit.Traits
}

// epoch is the wall clock at a crowd's beginning.
var epoch = time.Unix(1790000000, 0)

func newCrowd(t testing.TB, rules *limit.Rules, seed uint64, viewers int) *crowd {
	t.Helper()
	c := &crowd{t: t, rand: rand.New(rand.NewPCG(seed, 1)), rooms: map[string]*limit.Subject{}}
	c.gate = limit.NewGate(rules, func() limit.Instant { return c.now })
	c.rec = newRecorder("n1", c.gate.Now, epoch, Window, mostBytes)
	c.gate.Observe(c.rec)
	for i := range viewers {
		role := "viewer"
		if i%50 == 7 {
			role = "moderator"
		}
		c.viewers = append(c.viewers, &viewer{
			name: fmt.Sprintf("u%d-%d", seed, i), role: role, user: limit.Subject{Scope: limit.ScopeUser},
			seats: map[string]*limit.Subject{}, traits: limit.NewTraits(fmt.Sprintf(`{"level":%d}`, i%20)),
		})
	}
	return c
}

func (c *crowd) room(name string) *limit.Subject {
	if c.rooms[name] == nil {
		c.rooms[name] = &limit.Subject{Scope: limit.ScopeRoom}
	}
	return c.rooms[name]
}

// connect opens another connection of the viewer and joins a room by it.
func (c *crowd) connect(v *viewer, room string) *limit.Subject {
	conn := &limit.Subject{Scope: limit.ScopeConn}
	v.conns = append(v.conns, conn)
	c.ask(v, conn, limit.Join, 1, room)
	return conn
}

// ask puts one request, with the frame before it when there is a connection.
func (c *crowd) ask(v *viewer, conn *limit.Subject, a limit.Action, cost int64, room string) limit.Decision {
	c.now++
	if conn != nil && a != limit.Join {
		if d := c.gate.Decide(c.now, &limit.Request{Action: limit.Frame, User: v.name, Role: v.role}, conn); d.Verdict == limit.Reject {
			return d
		}
	}
	seat := v.seats[room]
	if seat == nil {
		seat = &limit.Subject{Scope: limit.ScopeUserRoom}
		v.seats[room] = seat
	}
	q := limit.Request{Action: a, Cost: cost, Role: v.role, User: v.name, Traits: v.traits, Room: room, Audience: len(c.viewers)}
	if conn == nil {
		return c.gate.Decide(c.now, &q, &v.user, seat, c.room(room))
	}
	return c.gate.Decide(c.now, &q, conn, &v.user, seat, c.room(room))
}

// run lets the viewers do something at random instants for a while, perSecond of them a second.
func (c *crowd) run(length time.Duration, perSecond int, rooms ...string) {
	end := c.now.Add(length)
	for c.now < end {
		c.now = c.now.Add(time.Duration(c.rand.ExpFloat64() * float64(time.Second) / float64(perSecond)))
		v := c.viewers[c.pick()]
		room := rooms[c.rand.IntN(len(rooms))]
		if len(v.conns) == 0 || c.rand.IntN(200) == 0 {
			c.connect(v, room)
			continue
		}
		conn := v.conns[c.rand.IntN(len(v.conns))]
		switch c.rand.IntN(10) {
		case 0:
			c.ask(v, conn, limit.Gift, 1+c.rand.Int64N(100), room)
		case 1, 2, 3:
			c.ask(v, conn, limit.Like, 1+c.rand.Int64N(20), room)
		case 4:
			c.ask(v, nil, limit.Danmaku, 1, room)
		default:
			c.ask(v, conn, limit.Danmaku, 1, room)
		}
	}
}

// snapshot returns the whole window up to now.
func (r *Recorder) snapshot() *Recording { return r.Between(time.Time{}, r.at(r.clock().Add(1))) }

// requests returns how many messages a recording covers, and how many of them are known one by one.
func (r *Recording) requests() (all, sampled int64) {
	for _, e := range r.records {
		if r.Kinds[e.kind].Action == limit.Frame {
			continue
		}
		all += int64(e.n)
		if e.user != 0 {
			sampled++
		}
	}
	return all, sampled
}

// pick prefers some viewers: a tenth of them does half of all.
func (c *crowd) pick() int {
	if c.rand.IntN(2) == 0 {
		return c.rand.IntN(max(len(c.viewers)/10, 1))
	}
	return c.rand.IntN(len(c.viewers))
}

func rules(t testing.TB, version int64, change func(*limit.Spec)) *limit.Rules {
	t.Helper()
	spec := limit.Default()
	spec.Version = version
	if change != nil {
		change(spec)
	}
	compiled, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func rule(t testing.TB, s *limit.Spec, name string) *limit.Rule {
	t.Helper()
	for i := range s.Rules {
		if s.Rules[i].Name == name {
			return &s.Rules[i]
		}
	}
	t.Fatalf("no rule %s", name)
	return nil
}
