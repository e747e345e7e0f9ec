package main

import (
	"fmt"
	"time"
)

// unit is how a value is written.
type unit uint8

const (
	inSeconds unit = iota
	inBytes
	inCount
	inRatio
	inShare // of a whole, written in percent
)

// A quantity is a figure that an objective can be stated for.
type quantity struct {
	name    string
	unit    unit
	atLeast bool // more is better; else less is
	about   string
}

// quantities lists them, in the order of the documentation.
func quantities() []quantity {
	out := []quantity{}
	for _, d := range []struct{ prefix, about string }{
		{"", "danmaku, due to a viewer's read"}, {"admission_", "danmaku, admission to a viewer's read"},
		{"gift_", "gifts, due to a viewer's read"}, {"ack_", "answers to danmaku and likes"},
		{"gift_ack_", "answers to gifts"}, {"join_", "dial to welcome"}, {"send_lag_", "this tool's own lateness"},
	} {
		for _, q := range []string{"p50", "p90", "p99", "p999", "max"} {
			out = append(out, quantity{d.prefix + q, inSeconds, false, d.about})
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
		quantity{"cpu_per_frame", inSeconds, false, "server's processor time, of all it did, by frame that a viewer read"},
		quantity{"memory_per_session", inBytes, false, "ramp: slope of resident memory over sessions, untouched"},
		quantity{"memory_per_session_freed", inBytes, false, "ramp: the same, each time after the server gave back what it could"},
		quantity{"heap_per_session", inBytes, false, "ramp: slope of the Go heap in use then"},
		quantity{"goroutines_per_session", inRatio, false, "ramp: slope of goroutines over sessions"},
		quantity{"memory_left", inBytes, false, "ramp, churn: resident memory after everybody left, above the start, untouched"},
		quantity{"memory_left_freed", inBytes, false, "ramp: the same, freed"},
		quantity{"goroutines_left", inCount, false, "ramp, churn: goroutines after everybody left, above the start"},
		quantity{"heap_growth", inRatio, false, "churn: heap of the last round above the second's"},
		quantity{"goroutine_growth", inRatio, false, "churn: goroutines of the last round above the second's"},
		quantity{"frame_cpu", inSeconds, false, "frames: the whole server's processor time by frame beyond its idle one, median of the rounds"},
		quantity{"idle_cpu", inShare, false, "frames: of one core, what the server needs while all are silent"},
		quantity{"frame_cpu_bare", inSeconds, false, "frames: that of a bare write(2) loop"},
		quantity{"frame_ratio", inRatio, false, "frames: the first over the second, median of the rounds"},
		quantity{"joins_per_second", inCount, true, "joins: all viewers at once, from the first dial to the last welcome, median of the rounds"},
		quantity{"joins_per_second_bare", inCount, true, "joins: the same of a bare upgrade loop"},
		quantity{"joins_ratio", inRatio, true, "joins: the first over the second, median of the rounds"},
		quantity{"join_cpu", inSeconds, false, "joins: server's processor time per join, median of the rounds"},
		quantity{"message_cpu", inSeconds, false, "tail: server's processor time per message beyond a bare write per frame, worst of the rates"},
		quantity{"delivery_cpu_1000", inSeconds, false, "tail: server's processor time per delivery at 1,000 messages/s"},
		quantity{"delivery_cpu_2000", inSeconds, false, "tail: the same at 2,000/s"},
		quantity{"delivery_cpu_4000", inSeconds, false, "tail: the same at 4,000/s"},
		quantity{"delivery_cpu_7000", inSeconds, false, "tail: the same at 7,000/s"},
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
		quantity{"recovery", inSeconds, false, "pulse: after the drop until latency is back to normal"},
	)
}

func quantityNamed(name string) (quantity, bool) {
	for _, q := range quantities() {
		if q.name == name {
			return q, true
		}
	}
	return quantity{}, false
}

// format writes a value with its unit.
func (u unit) format(v float64) string {
	switch u {
	case inSeconds:
		return round(time.Duration(v * 1e9)).String()
	case inBytes:
		return formatBytes(v)
	case inRatio:
		return fmt.Sprintf("%.3g", v)
	case inShare:
		return fmt.Sprintf("%.4g %%", 100*v)
	}
	if v == float64(int64(v)) {
		return fmt.Sprintf("%d", int64(v))
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

func formatBytes(v float64) string {
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
