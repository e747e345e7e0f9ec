package model

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gonum.org/v1/plot/plotter"
)

var docs = flag.String("docs", "", "with -large: the folder whose scale.md and charts are written anew")

// The table stands in scale.md between these lines.
const (
	tableBegins = "<!-- make model writes from here -->\n"
	tableEnds   = "<!-- to here -->\n"
)

// TestReport plays the catalogue and the other ways, and writes what came of it.
func TestReport(t *testing.T) {
	if !*large {
		var out bytes.Buffer
		s := named(t, "3 nodes, demand 1.2", time.Second)
		s.Want = Want{}
		Table(&out, []*Result{play(t, s)})
		if lines := bytes.Count(out.Bytes(), []byte("\n")); lines != 3 {
			t.Errorf("a table of %d lines:\n%s", lines, out.Bytes())
		}
		return
	}
	var results []*Result
	for _, s := range Catalogue(length()) {
		s.Seed, s.Length, s.Warm = *seed, length(), length()/5
		results = append(results, play(t, s))
	}
	others, pulse := otherWays(t)
	var out bytes.Buffer
	Table(&out, results)
	out.WriteString("\nThe same messages, other ways:\n\n")
	Table(&out, others)
	os.Stdout.Write(out.Bytes())
	if *docs == "" {
		return
	}
	plotPulse(t, pulse, *docs)
	plotCalls(t, *docs)
	page, err := os.ReadFile(filepath.Join(*docs, "scale.md"))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := bytes.Cut(page, []byte(tableBegins))
	_, after, ok := bytes.Cut(rest, []byte(tableEnds))
	if !ok {
		t.Fatal("scale.md has no place for the table")
	}
	page = bytes.Join([][]byte{before, []byte(tableBegins), out.Bytes(), []byte(tableEnds), after}, nil)
	if err := os.WriteFile(filepath.Join(*docs, "scale.md"), page, 0o644); err != nil {
		t.Fatal(err)
	}
}

// otherWays plays four scenarios in each way, the engine's included, and
// returns the pulse's on 20 nodes apart.
func otherWays(t *testing.T) (all, pulse []*Result) {
	for _, name := range []string{"20 nodes, demand 1.2", "3 nodes, one has all", "3 nodes, pulse 50x", "20 nodes, pulse 50x"} {
		for _, way := range []Way{Leases, PerMessage, ReportTenth, ReportSecond, FixedShare} {
			s := named(t, name, 20*time.Second)
			s.Way = way
			s.Want = Want{Unbound: way == ReportTenth || way == ReportSecond}
			r := play(t, s)
			all = append(all, r)
			if name == "20 nodes, pulse 50x" {
				pulse = append(pulse, r)
			}
		}
	}
	return all, pulse
}

// sweep measures calls a second over a range of demands.
func sweep(t *testing.T, way Way, nodes int) (points plotter.XYs) {
	for _, times := range []float64{0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 1, 1.2, 2, 5, 10, 20, 50} {
		s := Scenario{
			Name: "sweep", Seed: *seed, Way: way, Bound: danmaku, Nodes: nodes, Length: 5 * time.Second,
			Load: flat(danmaku, nodes, times),
		}
		r := play(t, s)
		t.Logf("%s, %d nodes, %.0f messages a second: %.1f calls a second", way, nodes, times*danmaku.perSecond(), r.Calls)
		points = append(points, plotter.XY{X: times * danmaku.perSecond(), Y: max(r.Calls, 0.1)})
	}
	return points
}
