package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

//go:embed report.html
var reportPage string

// page writes the result as one HTML page that needs nothing else: no script, no font, no network.
func (r *Result) page(w io.Writer) error {
	t, err := template.New("report").Parse(reportPage)
	if err != nil {
		return err
	}
	return t.Execute(w, r.view())
}

// view is the result as the page's template wants it.
type view struct {
	*Result
	When, Where string
	Tiles       []tile
	Charts      []*chart
	Tables      []table
}

type tile struct{ Name, Value, About string }

type table struct {
	Title, Text string
}

func (r *Result) view() view {
	e := r.Environment
	return view{Result: r, When: fmt.Sprintf("%s, %s", r.Started.Format("2006-01-02 15:04 MST"), time.Duration(r.Seconds*1e9).Round(time.Second)),
		Where: fmt.Sprintf("%s · %d processors · %s · %s · %s · %s", e.CPU, e.Processors, e.OS, e.Kernel, e.Go, strings.Join(e.Server, ", ")),
		Tiles: r.tiles(), Charts: r.charts(), Tables: r.tables()}
}

// telling are the figures that a run is about, in the order of importance, beside those that it has objectives for.
var telling = strings.Fields("p50 p99 gift_p99 recovery deliveries_per_second messages_per_frame delivered join_cpu frame_cpu frame_cpu_bare " +
	"memory_per_session cpu_per_frame server_cpu server_memory closes")

func (r *Result) tiles() (out []tile) {
	var names []string
	for _, o := range r.Objectives {
		names = append(names, o.Name)
	}
	for _, name := range append(names, telling...) {
		q, _ := quantityNamed(name)
		v, ok := r.Values[name]
		if t := (tile{strings.ReplaceAll(name, "_", " "), q.unit.Format(v), q.About}); ok && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// tables are those of the summary, and all values.
func (r *Result) tables() (out []table) {
	for _, s := range r.sheets() {
		out = append(out, table{s.title, s.text(r.Values, 3)})
	}
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', tabwriter.AlignRight)
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		q, _ := quantityNamed(name)
		fmt.Fprintf(t, "%s\t%s\t\n", name, q.unit.Format(r.Values[name]))
	}
	t.Flush()
	return append(out, table{"All figures", b.String()})
}
