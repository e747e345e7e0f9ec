package model

import (
	"fmt"
	"io"
	"time"
)

// Table writes results as a table in Markdown.
func Table(out io.Writer, results []*Result) {
	fmt.Fprintln(out, "| scenario | way | asked | admitted | bound | worst window | utilisation | calls/s per subject | per node | calls per message | least share | wait p50 / p99 / max |")
	fmt.Fprintln(out, "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, r := range results {
		b := r.Scenario.Bound
		worst := fmt.Sprint(r.Worst.Tokens)
		if r.Lost > 0 {
			worst += fmt.Sprintf(" (%d lost)", r.Lost)
		}
		if r.Worst.Tokens > b.Burst+r.Lost {
			worst = "**" + worst + "**"
		}
		fmt.Fprintf(out, "| %s | %s | %d | %d | %d | %s | %.1f %% | %.1f | %.1f | %.3f | %.2f | %s / %s / %s |\n",
			r.Scenario.Name, r.Scenario.Way, r.Asked, r.Admitted, b.Burst, worst, 100*r.Utilisation,
			r.Calls, r.NodeCalls, r.PerMessage, r.Share, short(r.P50), short(r.P99), short(r.Longest))
	}
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
