package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// unit is how a value is written.
type unit uint8

const (
	InSeconds unit = iota
	inBytes
	inCount
	inRatio
	inShare // of a whole, written in percent
)

// A quantity is a figure that an objective can be stated for.
type quantity struct {
	Name    string
	unit    unit
	AtLeast bool // more is better; else less is
	About   string
}

// Quantities lists them, in the order of the documentation.
func Quantities() []quantity {
	out := []quantity{}
	for _, d := range []struct{ prefix, about string }{
		{"", "danmaku, due to a viewer's read"}, {"admission_", "danmaku, admission to a viewer's read"},
		{"gift_", "gifts, due to a viewer's read"}, {"ack_", "answers to danmaku and likes"},
		{"gift_ack_", "answers to gifts"}, {"join_", "dial to welcome"}, {"send_lag_", "this tool's own lateness"},
		{"away_", "rolling: a viewer's socket's end to its next welcome"},
	} {
		for _, q := range []string{"p50", "p90", "p99", "p999", "max"} {
			out = append(out, quantity{d.prefix + q, InSeconds, false, d.about})
		}
	}
	return append(out,
		quantity{"gift_loss", inCount, false, "stored gifts that a viewer who stayed did not see"},
		quantity{"danmaku_loss", inCount, false, "admitted danmaku that a viewer who stayed did not see, announced or not"},
		quantity{"missed", inCount, false, "danmaku that the server announced as dropped"},
		quantity{"duplicates", inCount, false, "danmaku and gifts that a viewer saw twice"},
		quantity{"other_orders", inCount, false, "viewers who saw the danmaku in another order than most; only without loss"},
		quantity{"leaked", inCount, false, "degraded danmaku that others than the sender saw"},
		quantity{"quota_excess", inCount, false, "messages above burst + rate·w in the worst window (-bound)"},
		quantity{"unanswered", inCount, false, "attempts without an answer"},
		quantity{"answered_twice", inCount, false, "attempts with more than one"},
		quantity{"unreadable", inCount, false, "frames that are not what the contract says"},
		quantity{"like_falls", inCount, false, "like totals lower than one seen before"},
		quantity{"like_error", inCount, false, "difference of the like total shown and the taps that answers counted"},
		quantity{"refused", inCount, false, "attempts refused, of all classes"},
		quantity{"closes", inCount, false, "sessions closed by the server or the network"},
		quantity{"connect_failures", inCount, false, "sockets that were not upgraded or not welcomed"},
		quantity{"delivered", inShare, true, "danmaku that arrived, of those expected"},
		quantity{"deliveries_per_second", inCount, true, "events read by all viewers"},
		quantity{"frames_per_second", inCount, false, "frames read by all viewers"},
		quantity{"messages_per_frame", inCount, true, "events in an average frame"},
		quantity{"bytes_per_delivery", inBytes, false, "payload bytes per event read"},
		quantity{"deflated_to", inShare, false, "-compress: payload bytes that came, of what they inflated to"},
		quantity{"server_cpu", inShare, false, "of one core, mean while measured, all nodes"},
		quantity{"load_cpu", inShare, false, "of one core, this tool"},
		quantity{"other_cpu", inShare, false, "of one core, everything else on this machine: the noise"},
		quantity{"server_memory", inBytes, false, "most resident memory of a node"},
		quantity{"memory_growth", inBytes, false, "most resident memory of all nodes while attempts were made, above that before the first"},
		quantity{"cpu_per_frame", InSeconds, false, "server's processor time, of all it did, by frame that a viewer read"},
		quantity{"memory_per_session", inBytes, false, "ramp: slope of resident memory over sessions, untouched"},
		quantity{"memory_per_session_freed", inBytes, false, "ramp: the same, each time after the server gave back what it could"},
		quantity{"heap_per_session", inBytes, false, "ramp: slope of the Go heap in use then"},
		quantity{"goroutines_per_session", inRatio, false, "ramp: slope of goroutines over sessions"},
		quantity{"memory_left", inBytes, false, "ramp, churn: resident memory after everybody left, above the start, untouched"},
		quantity{"memory_left_freed", inBytes, false, "ramp: the same, freed"},
		quantity{"goroutines_left", inCount, false, "ramp, churn: goroutines after everybody left, above the start"},
		quantity{"heap_growth", inRatio, false, "churn: heap of the last round above the second's"},
		quantity{"goroutine_growth", inRatio, false, "churn: goroutines of the last round above the second's"},
		quantity{"frame_cpu", InSeconds, false, "frames: the whole server's processor time by frame beyond its idle one, median of the rounds"},
		quantity{"idle_cpu", inShare, false, "frames: of one core, what the server needs while all are silent"},
		quantity{"frame_cpu_bare", InSeconds, false, "frames: that of a bare write(2) loop"},
		quantity{"frame_ratio", inRatio, false, "frames: the first over the second, median of the rounds"},
		quantity{"joins_per_second", inCount, true, "joins: all viewers at once, from the first dial to the last welcome, median of the rounds"},
		quantity{"joins_per_second_bare", inCount, true, "joins: the same of a bare upgrade loop"},
		quantity{"joins_ratio", inRatio, true, "joins: the first over the second, median of the rounds"},
		quantity{"join_cpu", InSeconds, false, "joins: server's processor time per join, median of the rounds"},
		quantity{"gifts_per_second", inCount, true, "gifts: acknowledged"},
		quantity{"syncs_per_second", inCount, true, "gifts: of a file that is written and synced for each"},
		quantity{"gifts_per_sync", inRatio, true, "gifts: the first over the second"},
		quantity{"ledger_missing", inCount, false, "gifts: acknowledged, and not in the ledger"},
		quantity{"ledger_beyond", inCount, false, "gifts: in the ledger, and nobody was told"},
		quantity{"message_cpu", InSeconds, false, "tail: server's processor time per message beyond a bare write per frame, worst of the rates"},
		quantity{"delivery_cpu_1000", InSeconds, false, "tail: server's processor time per delivery at 1,000 messages/s"},
		quantity{"delivery_cpu_2000", InSeconds, false, "tail: the same at 2,000/s"},
		quantity{"delivery_cpu_4000", InSeconds, false, "tail: the same at 4,000/s"},
		quantity{"delivery_cpu_7000", InSeconds, false, "tail: the same at 7,000/s"},
		quantity{"fair_ratio", inRatio, false, "fair: a small room's p99 beside a busy huge one, over alone"},
		quantity{"slow_ratio", inRatio, false, "slow: the others' p99 with frozen readers, over without"},
		quantity{"slow_closed", inShare, true, "slow: frozen readers that the server cut off"},
		quantity{"memory_per_frozen", inBytes, false, "slow: resident memory a frozen reader adds"},
		quantity{"utilisation", inShare, true, "quota: admitted of burst + rate × time, over the stages in which nothing happens to the nodes"},
		quantity{"utilisation_stage", inShare, true, "quota: least of all stages whose demand is above the quota"},
		quantity{"redis_room_calls", inCount, false, "quota: most calls per second for the room, of the same stages"},
		quantity{"redis_user_calls", inCount, false, "quota: most calls per second for users who are on one node"},
		quantity{"user_excess", inCount, false, "quota: messages of one user on several nodes above its own bound"},
		quantity{"user_utilisation", inShare, true, "quota: what that user got of its bound"},
		quantity{"evidence_differs", inCount, false, "quota: admissions whose answer and event disagree"},
		quantity{"unannounced", inShare, false, "rolling: danmaku that viewers neither saw nor were told of, of those owed to them"},
		quantity{"recovery", InSeconds, false, "pulse: after the drop until latency is back to normal"},
	)
}

func quantityNamed(name string) (quantity, bool) {
	for _, q := range Quantities() {
		if q.Name == name {
			return q, true
		}
	}
	return quantity{}, false
}

// Format writes a value with its unit.
func (u unit) Format(v float64) string {
	switch u {
	case InSeconds:
		return round(time.Duration(v * 1e9)).String()
	case inBytes:
		return FormatBytes(v)
	case inRatio:
		return fmt.Sprintf("%.3g", v)
	case inShare:
		return fmt.Sprintf("%.4g %%", 100*v)
	}
	switch {
	case v == float64(int64(v)):
		return fmt.Sprintf("%d", int64(v))
	case v >= 1e4:
		return FormatCount(v)
	}
	return fmt.Sprintf("%.4g", v)
}

// round keeps three digits.
func round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

func FormatCount(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.2fM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.1fk", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}

func FormatBytes(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "KB"}} {
		if v >= u.size || v <= -u.size {
			return fmt.Sprintf("%.3g %s", v/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.3g B", v)
}

// Objective is a stated bound on one figure, and whether it was kept.
type Objective struct {
	Name     string  `json:"name"`
	Relation string  `json:"relation"` // "<=" or ">="
	Goal     bool    `json:"goal"`     // told, and fails nothing: it is about the machine as much as about the server
	Bound    float64 `json:"bound"`    // seconds, bytes, a count or a ratio
	Value    float64 `json:"value"`
	Measured bool    `json:"measured"` // false: this run has no such figure, so the objective is missed
	Met      bool    `json:"met"`
}

// ParseObjectives reads p99=200ms,gift_loss=0,delivered>=99.9%. A plain "=" means "this or better", a "~" before the name
// makes it a goal. Every fault is told.
func ParseObjectives(expr string) ([]Objective, error) {
	var out []Objective
	var faults []string
	for _, part := range strings.Split(expr, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		o, err := parseObjective(part)
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		out = append(out, o)
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("slo: %s", strings.Join(faults, "; "))
	}
	return out, nil
}

func parseObjective(s string) (Objective, error) {
	s, goal := strings.CutPrefix(s, "~")
	i := strings.IndexAny(s, "<>=")
	if i <= 0 {
		return Objective{}, fmt.Errorf("%q: want NAME=BOUND", s)
	}
	name, rest := strings.TrimSpace(s[:i]), s[i:]
	q, known := quantityNamed(name)
	if !known {
		return Objective{}, fmt.Errorf("%q is no figure; see -help", name)
	}
	o := Objective{Name: name, Relation: "<=", Goal: goal}
	if q.AtLeast {
		o.Relation = ">="
	}
	switch {
	case strings.HasPrefix(rest, "<="):
		o.Relation, rest = "<=", rest[2:]
	case strings.HasPrefix(rest, ">="):
		o.Relation, rest = ">=", rest[2:]
	case rest[0] == '=':
		rest = rest[1:]
	default:
		return Objective{}, fmt.Errorf("%q: want =, <= or >=", s)
	}
	bound, err := q.unit.parse(strings.TrimSpace(rest))
	if err != nil {
		return Objective{}, fmt.Errorf("%s: %w", name, err)
	}
	o.Bound = bound
	return o, nil
}

// parse reads a value: 200ms for a latency, 6KB or 6KiB for memory, 1.3 or 99.9% for a ratio.
func (u unit) parse(s string) (float64, error) {
	switch u {
	case InSeconds:
		if s == "0" {
			return 0, nil
		}
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return 0, fmt.Errorf("want a duration like 200ms, have %q", s)
		}
		return d.Seconds(), nil
	case inBytes:
		return parseBytes(s)
	}
	scale := 1.0
	if (u == inRatio || u == inShare) && strings.HasSuffix(s, "%") {
		s, scale = s[:len(s)-1], 0.01
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("want a number, have %q", s)
	}
	return v * scale, nil
}

func parseBytes(s string) (float64, error) {
	scale, whole := 1.0, s
	for _, u := range []struct {
		suffix string
		size   float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}} {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			s, scale = strings.TrimSpace(rest), u.size
			break
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("want bytes like 6KB, have %q", whole)
	}
	return v * scale, nil
}

// Measurable leaves out the objectives of a scenario that this run, told otherwise, has no figure for.
func Measurable(objectives []Objective, values map[string]float64) []Objective {
	return slices.DeleteFunc(objectives, func(o Objective) bool {
		_, ok := values[o.Name]
		return !ok
	})
}

// Judge fills in the values and reports whether all objectives but goals were met.
func Judge(objectives []Objective, values map[string]float64) bool {
	all := true
	for i := range objectives {
		o := &objectives[i]
		o.Value, o.Measured = values[o.Name]
		o.Met = o.Measured && (o.Relation == "<=" && o.Value <= o.Bound || o.Relation == ">=" && o.Value >= o.Bound)
		all = all && (o.Met || o.Goal)
	}
	return all
}

// Short reports whether the objective is a goal that was not reached.
func (o Objective) Short() bool { return o.Goal && o.Measured && !o.Met }

// String is the objective as a line of the summary.
func (o Objective) String() string {
	q, _ := quantityNamed(o.Name)
	switch {
	case o.Short():
		return fmt.Sprintf("goal   %s %s %s not reached: it was %s", o.Name, o.Relation, q.unit.Format(o.Bound), q.unit.Format(o.Value))
	case !o.Measured:
		return fmt.Sprintf("MISSED %s %s %s: not measured by this run", o.Name, o.Relation, q.unit.Format(o.Bound))
	case !o.Met:
		return fmt.Sprintf("MISSED %s %s %s: it was %s", o.Name, o.Relation, q.unit.Format(o.Bound), q.unit.Format(o.Value))
	}
	return fmt.Sprintf("met    %s %s %s: it was %s", o.Name, o.Relation, q.unit.Format(o.Bound), q.unit.Format(o.Value))
}
