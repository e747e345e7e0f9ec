package presence

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"liveroom/fanout/link"
	"liveroom/internal/lock"
)

// Config says who this node is, and how often it says so.
type Config struct {
	NodeID      string
	Incarnation uint64 // grows with each start of any node
	Shared      bool   // it has a quota store that all nodes share

	AnnounceEvery, NodeTimeout time.Duration

	Metrics *Metrics
}

// Presence is what the nodes know of one another. All methods may be called from any goroutine.
type Presence struct {
	// Fixed after New.
	link     *link.Link
	cfg      Config
	metrics  *Metrics
	here     Rooms
	began    time.Time // of this incarnation
	roster   *roster
	heard    heard
	soon     link.Wake      // asks for a beat
	follower *link.Follower // told by this node's own beats
	ended    chan struct{}  // closed with conflict

	wanted   atomic.Bool           // somebody wants all of this node's rooms
	conflict atomic.Pointer[error] // why this node must end

	mu      lock.Mutex[lock.Leaf]
	rooms   RoomCounts // guarded by mu
	samples Samples    // guarded by mu; nil: there are none
	met     []string   // who answered this node's Meet, during which others may ask; guarded by mu
}

// Rooms are those that this node has members in.
type Rooms interface {
	// Seen is how far this node has seen the room.
	Seen(room string) link.Seen
	// Heard is told how far another node has.
	Heard(room string, v link.Seen)
}

// New is for a start that has been numbered.
func New(l *link.Link, cfg Config, here Rooms) *Presence {
	return &Presence{
		link: l, cfg: cfg, metrics: cfg.Metrics, here: here, began: time.Now(), roster: newRoster(cfg.NodeID, cfg.NodeTimeout), heard: heard{nodes: map[string]map[string]heardSample{}},
		soon: link.NewWake(), ended: make(chan struct{}), follower: l.FollowEach(link.FollowPresence, cfg.AnnounceEvery, cfg.NodeTimeout, nil),
	}
}

// Start begins to listen to the other nodes.
func (p *Presence) Start() error {
	for subject, h := range map[string]nats.MsgHandler{
		link.PresenceSubject: p.hear, link.SamplesSubject: p.hearSamples, link.WhoSubject: p.sayWho, link.NodeSubject(p.cfg.NodeID, verbWhole): p.sayWhole,
	} {
		if _, err := p.link.Live.Subscribe(subject, h); err != nil {
			return fmt.Errorf("subscribe to %s: %w", subject, err)
		}
	}
	return nil
}

// Heard tells of this node's own first beat that came back.
func (p *Presence) Heard() <-chan struct{} { return p.follower.News }

// Soon asks for a beat.
func (p *Presence) Soon() { p.soon.Soon() }

// Count brings the number of nodes up to date. It falls to those that are heard of only when this node has been well itself for
// the node time-out.
func (p *Presence) Count(now time.Time, well bool) {
	if well {
		p.roster.settle(now)
	}
	p.metrics.nodes.Set(float64(p.NodeCount()))
}

// Metrics tell what presence costs and finds.
type Metrics struct {
	nodes prometheus.Gauge
	bytes prometheus.Counter
}

// NewMetrics registers the metrics with r, created at zero. With a nil r they are counted and shown to nobody.
func NewMetrics(r prometheus.Registerer) *Metrics {
	f := promauto.With(r)
	return &Metrics{
		nodes: f.NewGauge(prometheus.GaugeOpts{Name: "liveroom_bus_nodes", Help: "Nodes heard of lately, this one included."}),
		bytes: f.NewCounter(prometheus.CounterOpts{Name: "liveroom_bus_presence_bytes_total",
			Help: "Bytes in which this node has announced itself and its rooms."}),
	}
}

// The last tokens of what a node hears and says.
const (
	verbPresence = "presence"
	verbSamples  = "samples"
	verbWhole    = "whole" // asks a node to announce all of its rooms
)

// Crowd is who a room has on one node.
type Crowd struct {
	Sessions, People int
}

// RoomCounts yields each room that has members on this node with their number.
type RoomCounts func() iter.Seq2[string, Crowd]

// announcement is what a node says of itself with each beat: whole every wholeBeats-th time and when somebody asked, and
// between them what has changed since the beat before. It is cut into parts when it is long.
type announcement struct {
	identity
	Beat    uint64 `json:"beat"` // grows by one within an incarnation
	Whole   bool   `json:"whole,omitempty"`
	Part    int    `json:"part"`
	Parts   int    `json:"parts"`
	Goodbye bool   `json:"bye,omitempty"`
	// Rooms: members (0: no more), last gift, settings revision, like total, members beyond one for each person.
	Rooms map[string]announced `json:"rooms,omitempty"`
}

type announced [5]int64

func (a announced) crowd() Crowd { return Crowd{int(a[0]), int(a[0] - a[4])} }
func (a announced) seen() link.Seen {
	return link.Seen{Gift: uint64(a[1]), Revision: uint64(a[2]), Likes: a[3]}
}

const (
	// announceRooms bounds one part well below NATS' megabyte: 4096 rooms of at most 64 + 106 bytes.
	announceRooms = 4096
	// wholeBeats is how seldom a node says everything without being asked. Who has missed something asks.
	wholeBeats = 15
)

// Announce sets where presence takes this node's rooms from, in each beat. Until it is called, the
// node announces itself without rooms.
func (p *Presence) Announce(rooms RoomCounts) {
	p.mu.Lock()
	p.rooms = rooms
	p.mu.Unlock()
	p.soon.Soon()
}

// Online returns who the room has on the other nodes; whoever is on several of them counts on each.
func (p *Presence) Online(room string) Crowd { return p.roster.online(room, time.Now()) }

// Rooms returns the rooms of the other nodes with the number of their members there.
func (p *Presence) Rooms() map[string]Crowd { return p.roster.rooms(time.Now()) }

// Nodes returns the other nodes that were heard within [Config.NodeTimeout], by name.
func (p *Presence) Nodes() []string { return p.roster.names(time.Now()) }

// NodeCount returns how many nodes are alive, this one included. It costs one load. While this node does not hear well
// itself, and for [Config.NodeTimeout] after that, the number falls by goodbyes only: what it is for is to share out
// something among the nodes, and who is cut off must not take the shares of those it does not hear.
func (p *Presence) NodeCount() int { return int(p.roster.count.Load()) }

// beats is the announcing loop's own memory.
type beats struct {
	beat    uint64
	said    map[string]announced // what the others know if they missed nothing; nil: they know nothing
	left    bool                 // goodbye was said
	samples map[string]toldSample
}

// Run announces this node until ctx ends.
func (p *Presence) Run(ctx context.Context) {
	b := beats{samples: map[string]toldSample{}}
	beat := func(ctx context.Context) {
		if p.Conflict() != nil { // the other one is the node
			if !b.left {
				b.left = p.Goodbye(ctx) == nil
			}
			return
		}
		err := p.announce(&b)
		if err == nil {
			err = p.tellSamples(&b)
		}
		if err != nil {
			b.said = nil // nobody knows what arrived
			clear(b.samples)
			p.link.Log.Debug("presence not announced", "err", err)
		}
		p.heard.keep(p.roster.has)
	}
	beat(ctx)
	link.Every(ctx, p.cfg.AnnounceEvery, p.soon, beat)
}

func (p *Presence) announce(b *beats) error {
	b.beat++
	wanted := p.wanted.Swap(false)
	if wanted {
		clear(b.samples)
	}
	whole := wanted || b.said == nil || b.beat%wholeBeats == 0
	now := make(map[string]announced, len(b.said))
	for room, c := range p.localRooms() {
		v := p.here.Seen(room)
		now[room] = announced{int64(c.Sessions), int64(v.Gift), int64(v.Revision), v.Likes, int64(c.Sessions - c.People)}
	}
	parts := cutParts(now, b.said, whole)
	for i, rooms := range parts {
		a := announcement{identity: p.identity(), Beat: b.beat, Whole: whole, Part: i, Parts: len(parts), Rooms: rooms}
		if err := p.sendPresence(a); err != nil {
			return err
		}
	}
	b.said = now
	return nil
}

// cutParts returns what is to be said, at least one part.
func cutParts(now, said map[string]announced, whole bool) []map[string]announced {
	parts := []map[string]announced{{}}
	say := func(room string, v announced) {
		last := parts[len(parts)-1]
		if len(last) == announceRooms {
			last = map[string]announced{}
			parts = append(parts, last)
		}
		last[room] = v
	}
	for room, v := range now {
		if old, ok := said[room]; whole || !ok || old != v {
			say(room, v)
		}
	}
	if !whole {
		for room := range said {
			if _, ok := now[room]; !ok {
				say(room, announced{})
			}
		}
	}
	return parts
}

// Goodbye takes this node's counts away from the others at once.
func (p *Presence) Goodbye(ctx context.Context) error {
	if !p.link.Live.IsConnected() {
		return nil // they will notice
	}
	if err := p.sendPresence(announcement{identity: p.identity(), Goodbye: true}); err != nil {
		return err
	}
	ctx, cancel := p.link.Bounded(ctx)
	defer cancel()
	if err := p.link.Live.FlushWithContext(ctx); err != nil && p.link.Live.IsConnected() { // else they will notice
		return fmt.Errorf("say goodbye: %w", err)
	}
	return nil
}

func (p *Presence) sendPresence(a announcement) error {
	body, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("announce presence: %w", err)
	}
	p.metrics.bytes.Add(float64(len(body)))
	return p.link.Publish(link.NodeSubject(p.cfg.NodeID, verbPresence), body)
}

func (p *Presence) localRooms() iter.Seq2[string, Crowd] {
	p.mu.Lock()
	rooms := p.rooms
	p.mu.Unlock()
	if rooms == nil {
		return func(func(string, Crowd) bool) {}
	}
	return rooms()
}

// hear takes another node's presence: who it is, its counts, and whether it has seen more of a room than this node.
func (p *Presence) hear(m *nats.Msg) {
	var a announcement
	if err := json.Unmarshal(m.Data, &a); err != nil || a.Node == "" {
		return
	}
	if !a.Goodbye {
		p.judge(a.identity)
	}
	if a.Node == p.cfg.NodeID {
		if a.Incarnation == p.cfg.Incarnation {
			p.follower.Heard()
		}
		return
	}
	if p.roster.hear(a, time.Now()) {
		_ = p.link.Publish(link.NodeSubject(a.Node, verbWhole), nil) // lost when disconnected: asked for again
	}
	for room, v := range a.Rooms {
		p.here.Heard(room, v.seen())
	}
}

// sayWhole is for whoever has missed something.
func (p *Presence) sayWhole(*nats.Msg) {
	p.wanted.Store(true)
	p.soon.Soon()
}
