package model

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var docs = flag.String("docs", "", "with -large: the folder whose scale.md is written anew")

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
	var out bytes.Buffer
	Table(&out, results)
	out.WriteString("\nThe same messages, other ways:\n\n")
	Table(&out, otherWays(t))
	out.WriteString("\nCalls to the store a second, for one room of 200 messages a second (runs of five seconds):\n")
	sweep(t, &out)
	os.Stdout.Write(out.Bytes())
	if *docs == "" {
		return
	}
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

// otherWays plays four scenarios in each way, the engine's included.
func otherWays(t *testing.T) (all []*Result) {
	for _, name := range []string{"20 nodes, demand 1.2", "3 nodes, one has all", "3 nodes, pulse 50x", "20 nodes, pulse 50x"} {
		for _, way := range []Way{Leases, PerMessage, ReportTenth, ReportSecond, FixedShare} {
			s := named(t, name, 20*time.Second)
			s.Way = way
			s.Want = Want{Unbound: way == ReportTenth || way == ReportSecond}
			all = append(all, play(t, s))
		}
	}
	return all
}

// sweep writes calls a second over a range of demands, all nodes together.
func sweep(t *testing.T, out io.Writer) {
	columns := []struct {
		name  string
		way   Way
		nodes int
	}{{"a call per message", PerMessage, 3}, {"leases, 20 nodes", Leases, 20}, {"leases, 3 nodes", Leases, 3}}
	fmt.Fprint(out, "\n| messages/s that ask, all nodes |")
	for _, c := range columns {
		fmt.Fprintf(out, " %s |", c.name)
	}
	fmt.Fprintln(out, "\n|--:|"+strings.Repeat("--:|", len(columns)))
	for _, times := range []float64{0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 1, 1.2, 2, 5, 10, 20, 50} {
		fmt.Fprintf(out, "| %.0f |", times*danmaku.perSecond())
		for _, c := range columns {
			r := play(t, Scenario{
				Name: "sweep", Seed: *seed, Way: c.way, Bound: danmaku, Nodes: c.nodes, Length: 5 * time.Second, Load: flat(danmaku, c.nodes, times),
			})
			fmt.Fprintf(out, " %.1f |", r.Calls)
		}
		fmt.Fprintln(out)
	}
}
