package presence

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"liveroom/fanout/link"
	"liveroom/internal/lock"
)

// Samples tell who the rooms of this node have, so that a person on several nodes counts once. What a sample says is its readers' business.
type Samples interface {
	// Version is another one when the room's sample is.
	Version(room string) uint64
	// Sample of a room that has members here.
	Sample(room string) []byte
}

const (
	// sampleStep is how many bytes of a sample make it wait for another beat: large ones are told more seldom.
	sampleStep = 1280
	// samplesMost is what a node tells in one beat, in bytes; the rest waits.
	samplesMost = 64 << 10
	// sampleAgain is after how many beats a sample is told again that has not changed, for whoever has missed it.
	sampleAgain = 15
)

// sampled is what a node tells of the samples of rooms that others have, too.
type sampled struct {
	Node        string            `json:"node"`
	Incarnation uint64            `json:"inc"`
	Rooms       map[string][]byte `json:"rooms"`
}

// toldSample is what the announcing loop remembers of a sample.
type toldSample struct {
	version uint64
	beat    uint64
	size    int
}

// Sample sets where presence takes samples from.
func (p *Presence) Sample(s Samples) {
	p.mu.Lock()
	p.samples = s
	p.mu.Unlock()
}

// tellSamples tells those that have changed, of rooms that other nodes have.
func (p *Presence) tellSamples(b *beats) error {
	p.mu.Lock()
	from := p.samples
	p.mu.Unlock()
	if from == nil {
		return nil
	}
	now := time.Now()
	out, size := sampled{p.cfg.NodeID, p.cfg.Incarnation, map[string][]byte{}}, 0
	maps.DeleteFunc(b.samples, func(room string, _ toldSample) bool {
		_, here := b.said[room]
		return !here || p.roster.online(room, now).Sessions == 0
	})
	for room := range b.said {
		if size >= samplesMost {
			break
		}
		if p.roster.online(room, now).Sessions == 0 {
			continue
		}
		last, told := b.samples[room]
		version, beats := from.Version(room), b.beat-last.beat
		if told && (version == last.version || beats <= uint64(last.size/sampleStep)) && beats < sampleAgain {
			continue
		}
		sample := from.Sample(room)
		out.Rooms[room] = sample
		size += len(sample)
		b.samples[room] = toldSample{version, b.beat, len(sample)}
	}
	if len(out.Rooms) == 0 {
		return nil
	}
	body, err := json.Marshal(out)
	if err != nil {
		return err
	}
	p.metrics.bytes.Add(float64(len(body)))
	return p.link.Publish(link.NodeSubject(p.cfg.NodeID, verbSamples), body)
}

// hearSamples takes another node's.
func (p *Presence) hearSamples(m *nats.Msg) {
	var s sampled
	if err := json.Unmarshal(m.Data, &s); err != nil || s.Node == p.cfg.NodeID {
		return
	}
	p.heard.take(s, p.roster.knows(s.Node, s.Incarnation))
}

// heard are the other nodes' samples, of rooms that they have in common with others. A node that is gone takes them along.
type heard struct {
	mu    lock.Mutex[lock.Leaf]
	nodes map[string]map[string]heardSample
	seq   uint64
}

type heardSample struct {
	sample []byte
	seq    uint64 // another one for each that was heard
}

func (h *heard) take(s sampled, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !known {
		return
	}
	if h.nodes[s.Node] == nil {
		h.nodes[s.Node] = map[string]heardSample{}
	}
	for room, sample := range s.Rooms {
		h.seq++
		h.nodes[s.Node][room] = heardSample{sample, h.seq}
	}
}

func (h *heard) of(node, room string) heardSample {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.nodes[node][room]
}

// keep drops the samples of nodes and rooms that are gone.
func (h *heard) keep(has func(node, room string) bool) {
	type place struct{ node, room string }
	var all []place
	h.mu.Lock()
	for node, rooms := range h.nodes {
		for room := range rooms {
			all = append(all, place{node, room})
		}
	}
	h.mu.Unlock()
	gone := slices.DeleteFunc(all, func(p place) bool { return has(p.node, p.room) })
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range gone {
		if delete(h.nodes[p.node], p.room); len(h.nodes[p.node]) == 0 {
			delete(h.nodes, p.node)
		}
	}
}

// Elsewhere is who a room has on one other node.
type Elsewhere struct {
	Crowd
	Sample []byte // nil: not told yet
}

// Elsewhere returns who a room has on each other node, and a version that is another one when that is.
func (p *Presence) Elsewhere(room string) (all []Elsewhere, version uint64) {
	for node, crowd := range p.roster.of(room, time.Now()) {
		s := p.heard.of(node, room)
		all = append(all, Elsewhere{crowd, s.sample})
		version += uint64(crowd.People)*0x9e3779b97f4a7c15 + uint64(crowd.Sessions) + s.seq<<32 // in any order
	}
	return all, version
}
