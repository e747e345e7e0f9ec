package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// summary writes what a person wants to know, as text.
func (r *Result) summary(w io.Writer) {
	e := r.Environment
	fmt.Fprintf(w, "\n%s: %s\n%s, %s, %d processors, load %s", r.Scenario, r.About, e.OS, e.Go, e.Processors, e.Load)
	if len(e.Server) > 0 {
		fmt.Fprintf(w, ", server %s", strings.Join(e.Server, ", "))
	}
	fmt.Fprintf(w, "\nsessions: %s; the run took %s\n", r.Connections, time.Duration(r.Seconds*1e9).Round(time.Second))
	for _, s := range r.sheets() {
		fmt.Fprintf(w, "\n%s\n", s.text(r.Values, 2))
	}
	r.quotaLines(w)
	r.deliveryLines(w)
	r.costLines(w)
	writeCounts(w, "closed by the server or the network", r.Closes)
	writeCounts(w, "reasons", r.Reasons)
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	for _, o := range r.Objectives {
		fmt.Fprintln(w, o)
	}
}

func (r *Result) deliveryLines(w io.Writer) {
	d := r.Delivery
	if d == nil {
		return
	}
	fmt.Fprintf(w, "\ndelivered: danmaku %d of %d expected (%d lost, %d announced as missed, %d twice), gifts %d expected (%d lost, %d holes, %d twice)\n",
		d.Expected-d.Lost, d.Expected, d.Lost, d.Missed, d.Twice, d.Gifts, d.GiftLost, d.GiftHole, d.GiftDup)
	if d.Orders >= 0 {
		fmt.Fprintf(w, "order: %d of %d viewers saw another order than most of their room\n", d.Orders, d.Viewers)
	}
	fmt.Fprintf(w, "volume: %s deliveries/s in %s frames/s, %.3g events per frame, %.0f payload bytes per delivery\n",
		FormatCount(r.Values["deliveries_per_second"]), FormatCount(r.Values["frames_per_second"]),
		r.Values["messages_per_frame"], r.Values["bytes_per_delivery"])
	if v, ok := r.Values["deflated_to"]; ok {
		fmt.Fprintf(w, "compression: deflated to %.1f %% of the payload\n", 100*v)
	}
	if b := r.Bound; b != nil && b.Used > 0.01 && r.Quota == nil { // the bench rules' bound is no bound
		fmt.Fprintf(w, "quota: %d admitted of %d allowed by %d/s + %d (%.1f %%); worst window %d over\n",
			b.Admitted, b.Allowed, b.Rate, b.Burst, 100*b.Used, b.Excess)
	}
	if v, ok := r.Values["recovery"]; ok {
		fmt.Fprintf(w, "recovery: back to normal %s after the drop\n", InSeconds.Format(v))
	}
}

func (r *Result) costLines(w io.Writer) {
	if v, ok := r.Values["server_cpu"]; ok {
		fmt.Fprintf(w, "processor: server %.1f %% of a core, this tool %.1f %%, everything else %.1f %%\n",
			100*v, 100*r.Values["load_cpu"], 100*r.Values["other_cpu"])
	}
	if v, ok := r.Values["server_memory"]; ok {
		fmt.Fprintf(w, "memory: server at most %s resident\n", FormatBytes(v))
	}
}

func writeCounts(w io.Writer, title string, m map[string]int64) {
	if len(m) == 0 {
		return
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
	}
	fmt.Fprintf(w, "%s: %s\n", title, strings.Join(parts, ", "))
}

func (r *Result) quotaLines(w io.Writer) {
	q := r.Quota
	if q == nil {
		return
	}
	e := q.Proof
	fmt.Fprintf(w, "\nThe exact bucket: full at the start, drained by every admission of all nodes in the order of ts, and never below zero if no window\n"+
		"[a, b] of the run admits burst + rate·(b−a+1 ms): stamps are cut to milliseconds, so that the true window is shorter than that.\n")
	fmt.Fprintf(w, "evidence: %d admissions known by their answer, %d only by what others were shown; %d with two instants, %d shown although refused\n",
		e.Answered, e.Heard, e.Differ, e.Refused)
	if b := r.Bound; b != nil {
		verdict := "the bound held in every window"
		if b.Excess > 0 {
			verdict = fmt.Sprintf("THE BOUND WAS BROKEN by %d in the worst window", b.Excess)
		}
		if q.User != nil && q.User.Excess > 0 {
			verdict += fmt.Sprintf("; ONE USER'S by %d", q.User.Excess)
		}
		fmt.Fprintf(w, "%s: %d admitted of %d allowed from first to last (%.1f %%)\n", verdict, b.Admitted, b.Allowed, 100*b.Used)
		fmt.Fprintf(w, "closest window: %d ms to %d ms, %d admitted, %d allowed; by node %v\n", q.Worst.From, q.Worst.To, q.Worst.Admitted, q.Worst.Allowed, q.Worst.ByNode)
	}
}
