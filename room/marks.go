package room

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/netip"
	"slices"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
	"liveroom/protocol"
)

// A guest's name costs nothing. So a ban of one also bars guests by marks: of the network, and of the device note that the page
// sent. A mark is a keyed hash of one for one room: it says nothing without the nodes' secret, and nothing about other rooms.

// Bounds of marks.
const (
	markBytes    = 12  // of the hash: two networks in 2^48 would be taken for one
	maxMarks     = 8   // of one ban
	maxDeparted  = 256 // people who have left and could be banned yet, of one room and node
	departedFor  = 10 * time.Minute
	markNetwork  = "network"
	markDevice   = "device"
	noMarkOfThis = ""
)

// markOf hashes one thing of a guest.
func (r *Room) markOf(kind, value string) string {
	h := hmac.New(sha256.New, r.hub.cfg.MarkKey)
	for _, part := range []string{kind, r.id, value} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:markBytes])
}

// marks are a session's; "" where there is none.
type marks struct{ network, device string }

// marksOf hashes where somebody comes from: an IPv4 /24, an IPv6 /64, and the note of the page.
func (r *Room) marksOf(addr netip.Addr, device string) (m marks) {
	if addr = addr.Unmap(); addr.IsValid() {
		network := limit.NetPrefix(addr)
		if addr.Is6() {
			network = limit.HostPrefix(addr)
		}
		m.network = r.markOf(markNetwork, network.String())
	}
	if device != "" {
		m.device = r.markOf(markDevice, device)
	}
	return m
}

// marked is the member's marks, hashed when they are first asked for.
func (m *Member) marked() marks {
	if known := m.marks.Load(); known != nil {
		return *known
	}
	is := m.room.marksOf(m.addr, m.device)
	m.marks.Store(&is)
	return is
}

// departed are who left a room lately, the oldest first. mu is a leaf.
type departed struct {
	mu   lock.Mutex[lock.Leaf]
	list []departure
}

type departure struct {
	user, device string
	addr         netip.Addr
	at           time.Time
}

func (d *departed) note(m *Member, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list[max(len(d.list)-maxDeparted+1, 0):], departure{m.user.id, m.device, m.addr, now})
}

func (d *departed) none() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.list) == 0
}

// of returns from where a user was here.
func (d *departed) of(user string, now time.Time) (out []departure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.list {
		if x.user == user && now.Sub(x.at) < departedFor {
			out = append(out, x)
		}
	}
	return out
}

// markedBy adds to a ban the marks that this node knows of its user, and reports whether there were new ones.
func (r *Room) markedBy(s *Sanction) bool {
	had := len(s.Marks)
	add := func(m marks) {
		if !s.Network {
			m.network = noMarkOfThis
		}
		if !s.Device {
			m.device = noMarkOfThis
		}
		for _, mark := range []string{m.network, m.device} {
			if mark != noMarkOfThis && len(s.Marks) < maxMarks && !slices.Contains(s.Marks, mark) {
				s.Marks = append(slices.Clip(s.Marks), mark)
			}
		}
	}
	if !s.Network && !s.Device {
		return false
	}
	for _, m := range r.here(s.User) {
		add(m.marked())
	}
	for _, d := range r.departed.of(s.User, r.hub.cfg.Now()) {
		add(r.marksOf(d.addr, d.device))
	}
	return len(s.Marks) > had
}

// bar is what bans say of one mark.
type bar struct {
	term
	since int64 // Unix ms: guests named before are let in, unless it is wide
	wide  bool
}

// barMarks gathers what bans say of marks; of several the stricter.
func barMarks(bans []Sanction) map[string]bar {
	var all map[string]bar
	for _, s := range bans {
		for _, mark := range s.Marks {
			if all == nil {
				all = map[string]bar{}
			}
			b, known := all[mark]
			if !known || b.until != 0 && (s.Until == 0 || s.Until > b.until) {
				b.until = s.Until
			}
			b.since, b.wide = max(b.since, s.At), b.wide || s.Wide
			all[mark] = b
		}
	}
	return all
}

// bars reports whether guests of these marks are barred, and for how many ms yet.
func (p *policy) bars(who *Identity, m marks, now int64) (left int64, yes bool) {
	if p.allowed[who.User] {
		return 0, false
	}
	for _, mark := range []string{m.network, m.device} {
		b, marked := p.barred[mark]
		if !marked || !b.wide && !who.Born.IsZero() && who.Born.UnixMilli() < b.since {
			continue
		}
		if left, yes := b.left(now); yes {
			return left, true
		}
	}
	return 0, false
}

// shutOut is why somebody can't come in or stay: banned by name, or as a guest by marks, which are asked for only where there are any.
func (r *Room) shutOut(who *Identity, m func() marks) *protocol.Error {
	if left, yes := r.bannedNow(who); yes {
		return sanctionedFor(protocol.ReasonBanned, left)
	}
	p := r.policy.Load()
	if len(p.barred) == 0 || !who.Guest() || rankOf(who.Role) > rankViewer {
		return nil
	}
	if left, yes := p.bars(who, m(), r.hub.cfg.Now().UnixMilli()); yes {
		return sanctionedFor(protocol.ReasonNetworkBanned, left)
	}
	return nil
}

// followBans adds to new bans what this node alone knows of their users, and sends guests away whom new marks bar. It waits for the
// store, and so runs beside the feed.
func (r *Room) followBans(users []string, newMarks bool) {
	if _, here, _ := r.audience.Counts(); here == 0 && r.departed.none() {
		return
	}
	if len(users) > 0 {
		r.hub.spawn(func() {
			for _, user := range users {
				r.addMarks(user)
			}
		})
	}
	if newMarks {
		r.hub.spawn(r.cutMarked)
	}
}

func (r *Room) addMarks(user string) {
	if ban := sanctionOf(r.policy.Load().Bans, user); ban == nil || !r.markedBy(ban) {
		return
	}
	_ = r.changeOf(context.Background(), &deed{Of: protocol.ActionBan, User: user}, func(s *stored, _ int64) *protocol.Error { // told to the log; the ban by name stands
		if i := slices.IndexFunc(s.Bans, func(b Sanction) bool { return b.User == user }); i >= 0 {
			r.markedBy(&s.Bans[i])
		}
		return nil
	})
}

func (r *Room) cutMarked() {
	for _, m := range r.audience.Where(func(m *Member) bool { return m.who.Load().Guest() }) {
		if err := r.shutOut(m.acting(), m.marked); err != nil {
			m.session.Close(*refusal(err))
		}
	}
}
