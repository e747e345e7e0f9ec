package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Result is everything a run has to say; its JSON is what -json writes.
type Result struct {
	Scenario    string                  `json:"scenario"`
	About       string                  `json:"about"`
	Command     []string                `json:"command"`
	Started     time.Time               `json:"started"`
	Seconds     float64                 `json:"seconds"` // connecting included
	Environment Environment             `json:"environment"`
	Values      map[string]float64      `json:"values"` // by quantity: seconds, bytes, counts, ratios
	Latencies   map[string]Distribution `json:"latencies,omitempty"`
	Classes     map[string]ClassFigures `json:"classes,omitempty"`
	Delivery    *Delivery               `json:"delivery,omitempty"`
	Bound       *Bound                  `json:"bound,omitempty"`
	Timeline    []Slot                  `json:"timeline,omitempty"`
	SlotSeconds float64                 `json:"slot_seconds,omitempty"`
	Bands       []Band                  `json:"bands,omitempty"`                  // named stretches of the time line
	Began       float64                 `json:"attempts_began_seconds,omitempty"` // the first attempt, since sampling began
	Server      []ServerSample          `json:"server,omitempty"`
	Ramp        []RampPoint             `json:"ramp,omitempty"`
	Churn       []ChurnRound            `json:"churn,omitempty"`
	Slow        []Turn                  `json:"slow,omitempty"`
	Frames      []FrameRound            `json:"frames,omitempty"`
	Fair        []Turn                  `json:"fair,omitempty"`
	Joins       []JoinRound             `json:"joins,omitempty"`
	Tail        []TailRound             `json:"tail,omitempty"`
	Quota       *Quota                  `json:"quota,omitempty"`
	Connections Connections             `json:"connections"`
	Closes      map[string]int64        `json:"closes,omitempty"`          // by close code, only what the server or the network did
	Reasons     map[string]int64        `json:"reasons,omitempty"`         // of answers other than 200
	Counters    map[string]float64      `json:"server_counters,omitempty"` // what the server's own grew by while measured
	Objectives  []Objective             `json:"objectives,omitempty"`
	Notes       []string                `json:"notes,omitempty"` // what to know before one believes the figures

	from, to usage     // around the measured part
	sampling time.Time // when sampling began
	frames   float64   // read by all viewers while measured
}

// Bound is the room's quota and how well it held.
type Bound struct {
	Rate     int64   `json:"rate_per_second"`
	Burst    int64   `json:"burst"`
	Admitted int64   `json:"admitted"`
	Allowed  int64   `json:"allowed"` // burst + rate × the time between the first and the last admission
	Used     float64 `json:"used"`    // admitted / allowed
	Excess   int64   `json:"excess"`  // of the worst window
}

// Connections sums up how sessions came in.
type Connections struct {
	Wanted   int            `json:"wanted"`
	Joined   int64          `json:"joined"`
	Failed   int64          `json:"failed"`
	Silent   int64          `json:"silent"` // upgraded but neither welcomed nor closed
	Closed   int64          `json:"closed"` // upgraded, and closed instead of welcomed
	Failures map[string]int `json:"failures,omitempty"`
	Nodes    map[string]int `json:"nodes,omitempty"`
}

// String is the summary in one line.
func (c Connections) String() string {
	s := fmt.Sprintf("%d of %d joined", c.Joined, c.Wanted)
	if c.Failed > 0 {
		s += fmt.Sprintf(", %d failed", c.Failed)
	}
	if c.Silent > 0 {
		s += fmt.Sprintf(", %d without a welcome", c.Silent)
	}
	if c.Closed > 0 {
		s += fmt.Sprintf(", %d closed instead of welcomed", c.Closed)
	}
	for _, why := range slices.Sorted(maps.Keys(c.Failures)) {
		s += fmt.Sprintf("; %s: %d", why, c.Failures[why])
	}
	return s
}

func newResult(o *options) *Result {
	return &Result{Scenario: o.scenario.name, About: o.scenario.about, Command: command(), Started: time.Now().UTC(),
		Values: map[string]float64{}, Latencies: map[string]Distribution{}, Classes: map[string]ClassFigures{},
		Objectives: slices.Clone(o.objectives), Connections: Connections{Failures: map[string]int{}, Nodes: map[string]int{}}}
}

// command is how this run was called, without the secret.
func command() []string {
	args := slices.Clone(os.Args[1:])
	for i, a := range args {
		name, _, inline := strings.Cut(strings.TrimLeft(a, "-"), "=")
		switch {
		case name != "secret":
		case inline:
			args[i] = "-secret=…"
		case i+1 < len(args):
			args[i+1] = "…"
		}
	}
	return append([]string{"loadtest"}, args...)
}

func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// connected adds how a crowd came in.
func (r *Result) connected(c *crowd, wanted int) {
	x := &r.Connections
	x.Wanted += wanted
	x.Joined += c.joined.Load()
	x.Failed += c.failed.Load()
	silent := int64(c.count(stageNew))
	x.Silent += silent
	x.Closed += int64(c.size()) - c.joined.Load() - c.failed.Load() - silent
	c.mu.Lock()
	defer c.mu.Unlock()
	for why, n := range c.failures {
		x.Failures[why] += n
	}
	for node, n := range c.nodes {
		x.Nodes[node] += n
	}
}

// trial takes over a measured trial as the run's main one.
func (r *Result) trial(o *options, m *measured, slot time.Duration) {
	for name, c := range m.figures.classes {
		if c.Attempts > 0 {
			r.Classes[name] = *c
		}
	}
	r.Delivery, r.Timeline, r.SlotSeconds = &m.figures.delivery, m.slots, slot.Seconds()
	r.Delivery.Missed = m.counted.missed
	r.Began = m.trial.start.Sub(r.sampling).Seconds()
	r.latencies(&m.latencies)
	r.volumes(m)
	r.delivery()
	r.bound(o.bound, m.figures.stamps)
	if o.room == "" && m.likesCounted > 0 { // a fresh room begins at zero
		r.Values["like_error"] = math.Abs(float64(m.likesShown - m.likesCounted))
	}
}

// latencies adds every distribution that has something in it.
func (r *Result) latencies(l *latencies) {
	for m := range measures {
		d, ok := l.distribution(m)
		if !ok {
			continue
		}
		r.Latencies[m.String()] = d
		prefix := m.String() + "_"
		if m == toReceipt {
			prefix = ""
		}
		for name, v := range map[string]float64{"p50": d.P50, "p90": d.P90, "p99": d.P99, "p999": d.P999, "max": d.Max} {
			r.Values[prefix+name] = v
		}
	}
}

func (r *Result) volumes(m *measured) {
	seconds := max(m.took.Seconds(), 1e-3)
	deliveries := float64(m.counted.deliveries())
	r.frames += float64(m.counted.frames)
	r.Values["deliveries_per_second"] = deliveries / seconds
	r.Values["frames_per_second"] = float64(m.counted.frames) / seconds
	if m.counted.frames > 0 && deliveries > 0 {
		events := 0.0
		for _, n := range m.counted.events {
			events += float64(n)
		}
		r.Values["messages_per_frame"] = events / float64(m.counted.frames)
		r.Values["bytes_per_delivery"] = float64(m.counted.bytes) / deliveries
		if m.counted.saved != 0 {
			r.Values["deflated_to"] = float64(m.counted.bytes) / float64(m.counted.bytes+m.counted.saved)
		}
	}
}

func (r *Result) delivery() {
	d := r.Delivery
	r.Values["gift_loss"] = float64(d.GiftLost)
	r.Values["danmaku_loss"] = float64(d.Lost)
	r.Values["missed"] = float64(d.Missed)
	r.Values["duplicates"] = float64(d.Twice + d.GiftDup)
	r.Values["leaked"] = float64(d.Leaked)
	if d.Orders >= 0 {
		r.Values["other_orders"] = float64(d.Orders)
	}
	if d.Expected > 0 {
		r.Values["delivered"] = float64(d.Expected-d.Lost) / float64(d.Expected)
	}
	var refused, unanswered int64
	for _, c := range r.Classes {
		refused += c.Refused
		unanswered += c.Unanswered
	}
	r.Values["refused"], r.Values["unanswered"] = float64(refused), float64(unanswered)
}

func (r *Result) bound(b bound, stamps []int64) {
	if !b.stated() || len(stamps) == 0 {
		return
	}
	x := &Bound{Rate: b.rate, Burst: b.burst, Admitted: int64(len(stamps)), Excess: b.excess(stamps)}
	x.Allowed = b.burst + b.rate*(stamps[len(stamps)-1]-stamps[0])/1000
	x.Used = float64(x.Admitted) / float64(max(x.Allowed, 1))
	r.Bound = x
	r.Values["quota_excess"] = float64(x.Excess)
}

// count adds what was counted over the whole run.
func (r *Result) count(rd *readers) {
	r.Closes, r.Reasons = rd.tables()
	var closes int64
	for _, n := range r.Closes {
		closes += n
	}
	all := rd.totals()
	r.Values["closes"] = float64(closes)
	r.Values["connect_failures"] = float64(r.Connections.Failed + r.Connections.Silent + r.Connections.Closed)
	r.Values["answered_twice"] = float64(all.answeredTwice)
	r.Values["unreadable"] = float64(all.unreadable)
	r.Values["like_falls"] = float64(all.likeFalls)
	if all.skew > 0 {
		r.note("%d events came more than 2 ms before their ts: the clocks of server and load differ, do not use the latency since admission", all.skew)
	}
	var rest latencies
	rd.drain(&rest)
	if _, ok := r.Latencies[join.String()]; !ok {
		only := latencies{join: rest[join]}
		r.latencies(&only)
	}
}

// usage adds processor time and memory of the measured part.
func (r *Result) usage(s *sampler) {
	r.memory()
	if r.to.at.IsZero() || r.from.at.IsZero() {
		return
	}
	server, self, other := r.to.since(r.from)
	if !s.blind() {
		r.Values["server_cpu"] = server
	}
	r.Values["load_cpu"] = self
	if !s.blind() && r.to.machine > 0 {
		r.Values["other_cpu"] = other
		if other > 0.15 {
			r.note("other processes of this machine used %.0f %% of a core meanwhile: latencies are worse than the server's own", 100*other)
		}
	}
	if r.frames > 0 && !s.blind() {
		r.Values["cpu_per_frame"] = server * r.to.at.Sub(r.from.at).Seconds() / r.frames
	}
	if lag := r.Values["send_lag_p99"]; lag > 0.005 {
		r.note("this tool sent late (p99 %s): it, or its machine, was short of processor time, and that is part of every latency", inSeconds.format(lag))
	}
}

// memory compares the server's most with what it had when the first attempt was due.
func (r *Result) memory() {
	most, before := 0.0, 0.0
	for _, x := range r.Server {
		r.Values["server_memory"] = max(r.Values["server_memory"], x.Memory)
		if x.At <= r.Began {
			before = x.Memory
		} else {
			most = max(most, x.Memory)
		}
	}
	if r.Delivery != nil && before > 0 && most > 0 {
		r.Values["memory_growth"] = max(0, most-before)
	}
}

// around measures the processor time of what f does, and what the server counted meanwhile.
func (b *bench) around(ctx context.Context, f func() error) error {
	before := b.sampler.counters(ctx)
	b.result.from = b.sampler.spent(ctx)
	err := f()
	ctx = context.WithoutCancel(ctx)
	b.result.to = b.sampler.spent(ctx)
	for name, v := range b.sampler.counters(ctx) {
		if d := v - before[name]; d != 0 {
			if b.result.Counters == nil {
				b.result.Counters = map[string]float64{}
			}
			b.result.Counters[name] = d
		}
	}
	return err
}

// write puts the result where the options say, and the summary on stdout.
func (r *Result) write(o *options, stdout io.Writer) error {
	if o.json == "-" {
		return r.encode(stdout)
	}
	r.summary(stdout)
	if o.json != "" {
		if err := toFile(o.json, r.encode); err != nil {
			return fmt.Errorf("json: %w", err)
		}
	}
	if o.report != "" {
		if err := os.MkdirAll(o.report, 0o755); err != nil {
			return fmt.Errorf("report: %w", err)
		}
		path := filepath.Join(o.report, r.Scenario+".html")
		if err := toFile(path, r.page); err != nil {
			return fmt.Errorf("report: %w", err)
		}
		fmt.Fprintf(stdout, "\nreport: %s\n", path)
	}
	return nil
}

func (r *Result) encode(w io.Writer) error { return encodeJSON(w, r) }

func encodeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func toFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
