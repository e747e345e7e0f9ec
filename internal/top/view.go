package top

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"
)

// order is how rooms are sorted.
type order struct {
	key  byte // that chooses it
	name string
	less func(a, b listed) int
}

var orders = []order{
	{'v', "viewers", func(a, b listed) int { return cmp.Compare(b.Online, a.Online) }},
	{'m', "messages", func(a, b listed) int { return cmp.Compare(b.Rates.messages(), a.Rates.messages()) }},
	{'g', "gifts", func(a, b listed) int { return cmp.Compare(b.Rates.Gift, a.Rates.Gift) }},
	{'n', "name", func(listed, listed) int { return 0 }},
}

// view is what somebody chose to see.
type view struct {
	by       int    // of orders
	selected string // room
	opened   bool   // it alone
}

// rooms are the look's in the view's order.
func (v *view) rooms(l *Look) []listed {
	out := slices.Clone(l.Rooms)
	slices.SortFunc(out, func(a, b listed) int { return cmp.Or(orders[v.by].less(a, b), cmp.Compare(a.ID, b.ID)) })
	return out
}

// line is one of the screen; marked: stands out.
type line struct {
	text   string
	marked bool
}

// lines shows a node; wide and high bound them, where they are above 0.
func (v *view) lines(d since, wide, high int) []line {
	out := summary(d, wide)
	out = append(out, line{})
	if v.opened {
		out = append(out, opened(v.selected, d.to.Room)...)
	} else {
		rest := math.MaxInt
		if high > 0 {
			rest = max(high-len(out)-1, 1)
		}
		out = append(out, v.table(d.to, wide, rest)...)
	}
	if high > 0 && len(out) > high {
		out = out[:high]
	}
	for i := range out {
		out[i].text = cut(out[i].text, wide)
	}
	return out
}

// summary is the node. A group of facts that does not fit into the width begins another line.
func summary(d since, wide int) []line {
	l := d.to
	r := l.Ready
	redis := map[float64]string{0: "asked", 1: "probed", 2: "away"}[l.value("liveroom_breaker_state", "dependency", "redis")]
	if l.value("liveroom_redis_calls_total") == 0 {
		redis = "not asked"
	}
	nats := map[bool]string{true: "connected", false: "away"}[l.value("liveroom_bus_connected") == 1]
	overload := "none"
	for stage, on := range l.by("stage", "liveroom_overload") {
		if on > 0 {
			overload = stage
		}
	}
	gifts := d.rates("result", "liveroom_bus_gifts_total")
	var away []string
	for hook, n := range l.by("hook", "liveroom_hook_away") {
		if n > 0 {
			away = append(away, hook)
		}
	}
	slices.Sort(away)
	groups := [][]string{
		{"liveroom " + r.Node, r.Status, "up " + (time.Duration(r.UptimeMS) * time.Millisecond).Truncate(time.Second).String(), l.At.Format(time.TimeOnly), r.Version},
		{"degraded: " + cmp.Or(strings.Join(r.Degraded, ", "), "nothing")},
		{"sessions " + count(l.value("liveroom_sessions")), "users " + count(l.value("liveroom_users")), "rooms " + count(l.value("liveroom_rooms")),
			"CPU " + count(100*d.rate("process_cpu_seconds_total")) + " % of a core", "memory " + size(l.value("process_resident_memory_bytes")), "heap " + size(l.value("go_memstats_heap_inuse_bytes")),
			"goroutines " + count(l.value("go_goroutines")), "open files " + count(l.value("process_open_fds"))},
		{"admitted/s", "danmaku " + count(d.rate("liveroom_messages_total", "class", "danmaku")), "gifts " + count(d.rate("liveroom_messages_total", "class", "gift")), "likes " + count(d.rate("liveroom_messages_total", "class", "like")),
			"shown " + count(d.rate("liveroom_deliveries_total")), "frames " + count(d.rate("liveroom_frames_total")), "sent " + size(d.rate("liveroom_sent_bytes_total"))},
		{"lag " + seconds(l.value("liveroom_lag_seconds")), "tick " + seconds(l.value("liveroom_tick_seconds")), "gives up " + overload, "delivery p99 " + seconds(d.quantile(.99, "liveroom_delivery_seconds")),
			"dropped/s " + count(d.rate("liveroom_dropped_total")), "slow operations/s " + count(d.rate("liveroom_slow_operations_total"))},
		{"gifts/s", "stored " + count(gifts["stored"]), "again " + count(gifts["duplicate"]), "refused " + count(gifts["refused"]+gifts["late"]), "unknown " + count(gifts["unknown"]),
			"ledger p99 " + seconds(d.quantile(.99, "liveroom_bus_gift_seconds")), "unsettled " + count(l.value("liveroom_gifts_unsettled"))},
		{"NATS " + nats, "nodes " + count(l.value("liveroom_bus_nodes")), "Redis " + redis, "Redis calls/s " + count(d.rate("liveroom_redis_calls_total")), "hooks away: " + cmp.Or(strings.Join(away, ", "), "none"),
			"API calls/s " + count(d.rate("liveroom_http_request_seconds_count")), "faults " + count(d.rate("liveroom_http_request_seconds_count", "code", "5xx"))},
		append([]string{"refused/s"}, refusals(d)...),
	}
	var out []line
	for i, g := range groups {
		text := ""
		for _, fact := range g {
			if text != "" && wide > 0 && columns(text)+2+columns(fact) > wide {
				out = append(out, line{clean(text), i == 0})
				text = ""
				fact = "  " + fact
			} else if text != "" {
				text += "  "
			}
			text += fact
		}
		out = append(out, line{clean(text), i == 0 || i == 1 && len(r.Degraded) > 0})
	}
	return out
}

// refusals are the rules that refuse most, the first of them first.
func refusals(d since) []string {
	all := d.rates("rule", "liveroom_limit_decisions_total", "outcome", "reject")
	rules := slices.DeleteFunc(slices.Collect(maps.Keys(all)), func(r string) bool { return all[r] <= 0 })
	slices.SortFunc(rules, func(a, b string) int { return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b)) })
	out := []string{}
	for _, r := range rules[:min(len(rules), 6)] {
		out = append(out, r+" "+count(all[r]))
	}
	if len(out) == 0 {
		out = append(out, "nobody")
	}
	return out
}

// table lists rooms, around the selected one where they don't fit; columns on the right are left out where the screen is narrow.
func (v *view) table(l *Look, wide, high int) []line {
	type column struct {
		head string
		wide int
		cell func(listed) string
	}
	all := []column{
		{"ROOM by " + orders[v.by].name, -24, func(r listed) string { return r.ID + map[bool]string{true: " (closed)"}[r.Closed] }},
		{"VIEWERS", 9, func(r listed) string { return strconv.Itoa(r.Online) }},
		{"DANMAKU/S", 10, func(r listed) string { return count(r.Rates.Danmaku) }},
		{"GIFTS/S", 9, func(r listed) string { return count(r.Rates.Gift) }},
		{"LIKES/S", 9, func(r listed) string { return count(r.Rates.Like) }},
		{"PEOPLE", 9, func(r listed) string { return strconv.Itoa(r.People) }},
		{"LIKES", 12, func(r listed) string { return strconv.FormatInt(r.Likes, 10) }},
		{"  TITLE", 0, func(r listed) string { return "  " + r.Title }},
	}
	row := func(cell func(column) string) string {
		text := ""
		for i, c := range all {
			if i > 1 && wide > 0 && columns(text)+max(c.wide, 8) > wide {
				break
			}
			text += pad(clean(cell(c)), c.wide)
		}
		return text
	}
	rooms := v.rooms(l)
	at := max(slices.IndexFunc(rooms, func(r listed) bool { return r.ID == v.selected }), 0)
	high = max(high, 1)
	first := min(max(at-high/2, 0), max(len(rooms)-high, 0))
	out := []line{{row(func(c column) string { return c.head }), false}}
	for _, r := range rooms[first : min(len(rooms)-first, high)+first] {
		out = append(out, line{row(func(c column) string { return c.cell(r) }), v.selected != "" && r.ID == v.selected})
	}
	if len(rooms) == 0 {
		out = append(out, line{"no room is open", false})
	}
	return out
}

// opened is one room.
func opened(id string, r *detail) []line {
	if r == nil {
		return []line{{"room " + clean(id) + " is not there any more", false}}
	}
	out := []line{
		{clean("room " + r.ID + map[bool]string{true: " (closed)"}[r.Closed] + "  " + r.Title), true},
		{fmt.Sprintf("viewers %d  people %d  likes %d", r.Online, r.People, r.Likes), false},
		{"per second: danmaku " + count(r.Rates.Danmaku) + "  gifts " + count(r.Rates.Gift) + "  likes " + count(r.Rates.Like) + "  degraded " + count(r.Rates.Degraded) + "  refused " + count(r.Rates.Refused), false},
		{"", false},
		{pad("RULE", -28) + pad("ACTION", -10) + pad("LEFT", 12) + pad("OF", 12), false},
	}
	for _, q := range r.Quota {
		out = append(out, line{pad(clean(q.Rule), -28) + pad(clean(q.Action), -10) + pad(strconv.FormatInt(q.Level, 10), 12) + pad(strconv.FormatInt(q.Burst, 10), 12), false})
	}
	out = append(out, line{}, line{pad("REFUSED", -24) + pad("ACTION", -10) + pad("BY", -28) + pad("TIMES", 7) + pad("AGO", 10), false})
	for _, x := range r.Refusals {
		out = append(out, line{pad(clean(x.User), -24) + pad(clean(x.Action), -10) + pad(clean(cmp.Or(x.Rule, x.Reason)), -28) + pad(strconv.Itoa(x.Count), 7) +
			pad((time.Duration(x.AgeMS)*time.Millisecond).Truncate(time.Second).String(), 10), false})
	}
	return out
}

// count is a number for people, with three digits where it is small.
func count(n float64) string {
	switch {
	case n >= 1e7:
		return strconv.FormatFloat(n/1e6, 'f', 1, 64) + "M"
	case n >= 1e4:
		return strconv.FormatFloat(n/1e3, 'f', 1, 64) + "k"
	case n == math.Trunc(n) || n >= 100:
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strconv.FormatFloat(n, 'f', 1, 64)
}

func size(n float64) string {
	switch {
	case n >= 1<<30:
		return strconv.FormatFloat(n/(1<<30), 'f', 1, 64) + " GiB"
	case n >= 1<<20:
		return strconv.FormatFloat(n/(1<<20), 'f', 0, 64) + " MiB"
	}
	return strconv.FormatFloat(n/(1<<10), 'f', 0, 64) + " KiB"
}

func seconds(n float64) string {
	switch {
	case math.IsNaN(n):
		return "–"
	case math.IsInf(n, 1):
		return "beyond"
	case n >= 1:
		return strconv.FormatFloat(n, 'f', 1, 64) + " s"
	}
	return strconv.FormatFloat(n*1e3, 'f', 1, 64) + " ms"
}

// clean keeps what strangers wrote from steering the terminal.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) || unicode.Is(unicode.Bidi_Control, c) {
			return -1
		}
		return c
	}, s)
}

// columnsOf is how many columns of a terminal a character takes (UAX 11).
func columnsOf(c rune) int {
	switch k := width.LookupRune(c).Kind(); {
	case unicode.In(c, unicode.Mn, unicode.Me):
		return 0
	case k == width.EastAsianWide || k == width.EastAsianFullwidth:
		return 2
	}
	return 1
}

func columns(s string) (n int) {
	for _, c := range s {
		n += columnsOf(c)
	}
	return n
}

// cut keeps the columns that fit; 0: all.
func cut(s string, wide int) string {
	n := 0
	for i, c := range s {
		if n += columnsOf(c); wide > 0 && n > wide {
			return s[:i]
		}
	}
	return s
}

// pad brings a cell to its width, on its right side where that is negative; what is too long loses its end, and a blank follows.
func pad(s string, wide int) string {
	left := wide < 0
	if wide == 0 {
		return s
	}
	if left {
		wide = -wide
	}
	s = cut(s, wide-1)
	room := strings.Repeat(" ", wide-columns(s))
	if left {
		return s + room
	}
	return room + s
}
