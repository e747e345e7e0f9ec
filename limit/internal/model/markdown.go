package model

import (
	"fmt"
	"io"
	"time"
)

// Table writes results as a table in Markdown.
func Table(out io.Writer, results []*Result) {
	fmt.Fprintln(out, "| scenario | way | asked | admitted | burst | worst window | used | calls/s a subject | a node | calls a message | least share | waited p99, longest |")
	fmt.Fprintln(out, "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, r := range results {
		fmt.Fprintf(out, "| %s | %s | %d | %d | %d | %s | %.1f %% | %.1f | %.1f | %.3f | %.2f | %s, %s |\n",
			r.Scenario.Name, r.Scenario.Way, r.Asked, r.Admitted, r.Scenario.Bound.Burst, r.window(), 100*r.Utilisation,
			r.Calls, r.NodeCalls, r.PerMessage, r.Share, short(r.P99), short(r.Longest))
	}
}

// window is the worst window, marked when it is over the burst.
func (r *Result) window() string {
	text := fmt.Sprint(r.Worst.Tokens)
	if r.Worst.Tokens > r.Scenario.Bound.Burst {
		text = "**" + text + "**"
	}
	if r.Lost > 0 {
		text += fmt.Sprintf(" (%d lost)", r.Lost)
	}
	return text
}

func short(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	}
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
