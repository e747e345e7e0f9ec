package room

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"liveroom/protocol"
	"liveroom/room/audience"
)

// Metrics are what the rooms of a node count.
type Metrics struct {
	audience     *audience.Metrics
	rooms, users prometheus.Gauge
	messages     [protocol.NumClasses]prometheus.Counter
	repeats      prometheus.Counter
	unnoted      prometheus.Counter
	unerased     prometheus.Counter
	held         [heldOutcomes]prometheus.Counter
	waiting      prometheus.Gauge
	raids        prometheus.Counter
	filtered     map[protocol.FilterAction]prometheus.Counter
	lag, tick    prometheus.Gauge
	overload     [len(stages)]prometheus.Gauge
	listsFull    prometheus.Counter
}

// refuseAct counts an act of moderation for which a room has no place.
func (m *Metrics) refuseAct(err *protocol.Error) {
	if err.Reason == protocol.ReasonListFull {
		m.listsFull.Inc()
	}
}

// What becomes of held messages.
const (
	heldWaits = iota
	heldFull
	heldFailed
	heldReleased // by somebody; byTime on: by time
	heldDropped
	heldOutcomes = heldDropped + 3
	byTime       = 2
)

func heldOutcome(m *protocol.Held) int {
	o := heldReleased
	if m.State == protocol.HeldDropped {
		o = heldDropped
	}
	if m.By == "" {
		o += byTime
	}
	return o
}

// stages are what a node that is behind does, by the rung it begins on.
var stages = [...]struct {
	name string
	rung int
}{{"ticks", rungNormal + 1}, {"likes", rungLikes}, {"danmaku", rungDanmaku}, {"connections", rungNewcomers}}

// NewMetrics registers the metrics with r, created at zero. With a nil r they are counted and shown to nobody.
func NewMetrics(r prometheus.Registerer) *Metrics {
	f := promauto.With(r)
	m := &Metrics{
		audience: audience.NewMetrics(r),
		rooms:    f.NewGauge(prometheus.GaugeOpts{Name: "liveroom_rooms", Help: "Rooms of this node, idle ones included."}),
		users: f.NewGauge(prometheus.GaugeOpts{Name: "liveroom_users",
			Help: "Users of this node, those who left and whose buckets are not full again included."}),
		repeats: f.NewCounter(prometheus.CounterOpts{Name: "liveroom_first_answers_total",
			Help: "Requests answered from the memory of first answers."}),
	}
	m.unerased = f.NewCounter(prometheus.CounterOpts{Name: "liveroom_unerased_total",
		Help: "Deleted messages that stay in the logs, since it could not be stored that they are to go."})
	m.unnoted = f.NewCounter(prometheus.CounterOpts{Name: "liveroom_events_unkept_total",
		Help: "Events that could not be handed to the log that back ends read."})
	messages := f.NewCounterVec(prometheus.CounterOpts{Name: "liveroom_messages_total",
		Help: "Messages admitted by this node; degraded and repeated ones are not counted."}, []string{"class"})
	for c := range protocol.NumClasses {
		m.messages[c] = messages.WithLabelValues(c.String())
	}
	m.listsFull = f.NewCounter(prometheus.CounterOpts{Name: "liveroom_moderation_full_total",
		Help: "Acts of moderation refused since a room's list of mutes, bans or appointments is full (reason list_full)."})
	held := f.NewCounterVec(prometheus.CounterOpts{Name: "liveroom_held_total",
		Help: "Messages that this node held for staff, or found no place for, and those that were decided on here: by somebody, or by time."}, []string{"outcome"})
	for o, name := range [heldOutcomes]string{"waits", "full", "failed", "released", "dropped", "released_by_time", "dropped_by_time"} {
		m.held[o] = held.WithLabelValues(name)
	}
	m.raids = f.NewCounter(prometheus.CounterOpts{Name: "liveroom_raids_total", Help: "Raids that this node found first: newcomers' danmaku of the room are held."})
	filtered := f.NewCounterVec(prometheus.CounterOpts{Name: "liveroom_filtered_total",
		Help: "Danmaku that have a word of a list, by the strictest action that one asks for."}, []string{"action"})
	m.filtered = map[protocol.FilterAction]prometheus.Counter{}
	for _, a := range protocol.FilterActions() {
		m.filtered[a] = filtered.WithLabelValues(string(a))
	}
	m.waiting = f.NewGauge(prometheus.GaugeOpts{Name: "liveroom_held_waiting", Help: "Messages that wait for staff, of all rooms and nodes; at most 50,000."})
	m.watched(f)
	return m
}

// watched registers what tells of overload.
func (m *Metrics) watched(f promauto.Factory) {
	m.lag = f.NewGauge(prometheus.GaugeOpts{Name: "liveroom_lag_seconds",
		Help: "How late this node comes to what viewers send. Over 0.04 it gives things up step by step."})
	m.tick = f.NewGauge(prometheus.GaugeOpts{Name: "liveroom_tick_seconds",
		Help: "Shortest time between two flushes of a room: what is configured, doubled up to three times while this node is behind."})
	overload := f.NewGaugeVec(prometheus.GaugeOpts{Name: "liveroom_overload",
		Help: "1 while this node is behind and therefore stretches ticks, or refuses likes, danmaku, connections."}, []string{"stage"})
	for i, s := range stages {
		m.overload[i] = overload.WithLabelValues(s.name)
	}
}

// behind shows how far behind the node is.
func (m *Metrics) behind(lag time.Duration, rung int, tick time.Duration) {
	m.lag.Set(lag.Seconds())
	m.tick.Set(tick.Seconds())
	for i, s := range stages {
		on := 0.0
		if rung >= s.rung {
			on = 1
		}
		m.overload[i].Set(on)
	}
}
