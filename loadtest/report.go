package main

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
	Scenario, About, Command, When, Where string
	Tiles                                 []tile
	Objectives                            []Objective
	Notes                                 []string
	Charts                                []chart
	Tables                                []table
	Connections                           string
}

type tile struct{ Name, Value, About string }

type table struct {
	Title string
	Text  string
	Wide  bool // needs the width of the page
}

func (r *Result) view() view {
	e := r.Environment
	return view{Scenario: r.Scenario, About: r.About, Command: strings.Join(r.Command, " "),
		When:  fmt.Sprintf("%s, %s", r.Started.Format("2006-01-02 15:04 MST"), time.Duration(r.Seconds*1e9).Round(time.Second)),
		Where: strings.Join(slices.DeleteFunc([]string{e.CPU, fmt.Sprintf("%d processors", e.Processors), e.OS, e.Kernel, e.Go, strings.Join(e.Server, ", ")}, func(s string) bool { return s == "" }), " · "),
		Tiles: r.tiles(), Objectives: r.Objectives, Notes: r.Notes, Connections: r.Connections.String(),
		Charts: r.charts(), Tables: r.tables()}
}

// tiles are the figures that a scenario is about, in the order of importance.
func (r *Result) tiles() []tile {
	var out []tile
	for _, name := range []string{"quota_excess", "utilisation", "utilisation_stage", "redis_room_calls", "redis_user_calls", "user_excess",
		"user_utilisation", "joins_ratio", "joins_per_second", "join_cpu", "frame_ratio", "frame_cpu", "frame_cpu_bare", "slow_ratio", "fair_ratio", "memory_per_session", "memory_per_session_freed", "goroutines_per_session", "heap_growth",
		"goroutine_growth", "p50", "p99", "gift_p99", "gift_loss", "recovery", "deliveries_per_second", "messages_per_frame",
		"delivered", "cpu_per_frame", "server_cpu", "server_memory", "closes"} {
		q, _ := quantityNamed(name)
		v, ok := r.Values[name]
		if !ok {
			continue
		}
		text := q.unit.format(v)
		if name == "deliveries_per_second" {
			text = formatCount(v)
		}
		label := strings.ReplaceAll(name, "_", " ")
		if name[0] == 'p' {
			label = "danmaku " + label
		}
		out = append(out, tile{label, text, q.about})
	}
	return out
}

// tables are those of the summary, and all values.
func (r *Result) tables() (out []table) {
	for _, s := range r.sheets() {
		text := s.text(r.Values, 3)
		line, _, _ := strings.Cut(text, "\n")
		out = append(out, table{s.title, text, len(line) > 80})
	}
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', tabwriter.AlignRight)
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		q, _ := quantityNamed(name)
		fmt.Fprintf(t, "%s\t%s\t\n", name, q.unit.format(r.Values[name]))
	}
	t.Flush()
	return append(out, table{"All figures", b.String(), false})
}
