package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"liveroom/loadtest/internal/report"
)

// tableOptions is everything the command table can be told. The flags' texts document the fields.
type tableOptions struct {
	viewers, sizes, fanouts []int
	rate                    int
	rounds, sessions        int
	duration                time.Duration
	server                  string
	serverCPUs, loadCPUs    string
	beside                  string
	json                    string
}

// tableAbout is the command in a line of the help.
const tableAbout = "measures what the README's table says, each beside a bare write(2) loop of the same run, and prints it"

func parseTable(args []string, usage io.Writer) (*tableOptions, error) {
	o := &tableOptions{}
	set := flag.NewFlagSet("loadtest table", flag.ContinueOnError)
	parsedVar(set, &o.viewers, "viewers", "1000,10000", "frames: how many viewers", numbers)
	parsedVar(set, &o.sizes, "sizes", "128,1024,4096", "frames: how many bytes, about", numbers)
	set.IntVar(&o.rounds, "rounds", 7, "frames: turns of the server and of the bare loop; deliveries: turns with and without -beside")
	parsedVar(set, &o.fanouts, "fanout", "5000,10000", "deliveries: how many viewers; empty: leave it out", numbers)
	set.IntVar(&o.rate, "rate", 1000, "deliveries: danmaku per second")
	set.DurationVar(&o.duration, "duration", 10*time.Second, "deliveries: how long")
	set.StringVar(&o.beside, "beside", "", "deliveries: then by turns also of a server with these arguments, like \"-events-danmaku off\", and the ratios to it")
	set.IntVar(&o.sessions, "sessions", 18_000, "memory: idle sessions; 0: leave it out")
	set.StringVar(&o.server, "server", "", "the liveserver to start; empty: build it from this module")
	server, load := "0", "1"
	if runtime.NumCPU() < 2 || runtime.GOOS != "linux" {
		server, load = "", ""
	}
	set.StringVar(&o.serverCPUs, "server-cpus", server, "Linux: processors for the server and the bare loop")
	set.StringVar(&o.loadCPUs, "load-cpus", load, "Linux: processors for this tool")
	set.StringVar(&o.json, "json", "", "file for the results of all runs as JSON")
	return o, parseFlags(set, tableAbout, args, usage)
}

// printTable runs the scenarios that the README's table needs, one after the other, and prints it as Markdown. What was
// measured before a run failed is printed too.
func printTable(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseTable(args, stdout)
	if err != nil {
		return badFlags("table", err, stderr)
	}
	t := &ratioTable{o: o, stderr: stderr}
	err = t.measure(ctx)
	t.write(stdout)
	if o.json != "" {
		err = errors.Join(err, report.ToFile(o.json, func(w io.Writer) error { return report.EncodeJSON(w, t.results) }))
	}
	if err != nil {
		fmt.Fprintf(stderr, "loadtest table: %v\n", err)
		return exitMissed
	}
	return exitOK
}

// ratioTable collects the rows.
type ratioTable struct {
	o       *tableOptions
	stderr  io.Writer
	results []*report.Result
	text    strings.Builder // Markdown
}

func (t *ratioTable) measure(ctx context.Context) error {
	section, o := "", t.o
	row := func(head, line string) {
		if head != section {
			fmt.Fprintf(&t.text, "\n%s\n", head)
		}
		section = head
		fmt.Fprintln(&t.text, line)
	}
	for _, viewers := range o.viewers {
		for _, size := range o.sizes {
			r, err := t.run(ctx, "frames", "-viewers", strconv.Itoa(viewers), "-size", strconv.Itoa(size), "-rounds", strconv.Itoa(o.rounds))
			if err != nil {
				return err
			}
			row("| processor time per frame | bare write(2) loop | whole server | ratio |\n|---|---|---|---|", framesRow(viewers, r))
		}
	}
	for _, viewers := range o.fanouts {
		r, err := t.run(ctx, "fanout", append(t.deliveries(viewers), "-bare")...)
		if err != nil {
			return err
		}
		row("| one room | deliveries/s | p50 | p99, admission to read | server, of a core | time per frame |\n|---|---|---|---|---|---|", deliveriesRow(viewers, o.rate, r))
	}
	for _, viewers := range o.fanouts {
		if o.beside == "" {
			break
		}
		line, err := t.besideRow(ctx, viewers)
		if err != nil {
			return err
		}
		row(fmt.Sprintf("| one room, by turns | | with `%s` | without | ratio of each turn |\n|---|---|---|---|---|", o.beside), line)
	}
	if o.sessions == 0 {
		return nil
	}
	r, err := t.run(ctx, "ramp", "-viewers", strconv.Itoa(o.sessions), "-connect-rate", "1500")
	if err == nil {
		row(fmt.Sprintf("| an idle session, slope from 2,000 to %s | each | 30 s after all have left |\n|---|---|---|", thousands(o.sessions)), memoryRows(r))
	}
	return err
}

// deliveries are the arguments of a fan-out.
func (t *ratioTable) deliveries(viewers int) []string {
	return []string{"-viewers", strconv.Itoa(viewers), "-rate", strconv.Itoa(t.o.rate), "-duration", t.o.duration.String(), "-connect-rate", "2000"}
}

// besideRow measures deliveries with the arguments -beside and without, by turns, of which every other one begins with either.
func (t *ratioTable) besideRow(ctx context.Context, viewers int) (string, error) {
	figures := []struct {
		what, value string
		format      func(float64) string
	}{
		{"server, of a core", "server_cpu", func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }},
		{"time per frame", "cpu_per_frame", micros},
		{"p99", "admission_p99", report.InSeconds.Format},
	}
	turns := make([][2]*report.Result, t.o.rounds)
	for i := range turns {
		for j := range turns[i] {
			args, which := t.deliveries(viewers), (i+j)%2 // 0: without
			if which == 1 {
				args = append(args, "-server-args", t.o.beside)
			}
			var err error
			if turns[i][which], err = t.run(ctx, "fanout", args...); err != nil {
				return "", err
			}
		}
	}
	var lines []string
	for _, f := range figures {
		var with, without, ratio []float64
		for _, turn := range turns {
			a, b := turn[1].Values[f.value], turn[0].Values[f.value]
			with, without, ratio = append(with, a), append(without, b), append(ratio, b/max(a, 1e-9))
		}
		lines = append(lines, fmt.Sprintf("| %s viewers × %s/s | %s | %s | %s | **%s ×** |", thousands(viewers), thousands(t.o.rate), f.what,
			spread(with, f.format), spread(without, f.format), spread(ratio, func(v float64) string { return fmt.Sprintf("%.3f", v) })))
	}
	return strings.Join(lines, "\n"), nil
}

// run runs a scenario on a server of its own.
func (t *ratioTable) run(ctx context.Context, name string, args ...string) (*report.Result, error) {
	sc, _ := scenarioNamed(name)
	common := []string{"-spawn", "1", "-slo", "", "-server", t.o.server, "-server-cpus", t.o.serverCPUs, "-load-cpus", t.o.loadCPUs}
	o, err := parseOptions(sc, append(common, args...), io.Discard)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(t.stderr, "\n%s %s\n", name, strings.Join(args, " "))
	r, err := perform(ctx, o, t.stderr)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	t.results = append(t.results, r)
	return r, nil
}

func framesRow(viewers int, r *report.Result) string {
	var size, server, bare, ratio []float64
	for _, f := range r.Frames {
		size, server, bare, ratio = append(size, f.Bytes), append(server, f.Server), append(bare, f.Bare), append(ratio, f.Ratio)
	}
	return fmt.Sprintf("| %s viewers, %.0f B | %s | %s | **%s ×** |", thousands(viewers), report.Median(size),
		spread(bare, micros), spread(server, micros), spread(ratio, func(v float64) string { return fmt.Sprintf("%.2f", v) }))
}

func deliveriesRow(viewers, rate int, r *report.Result) string {
	v := r.Values
	return fmt.Sprintf("| %s viewers × %s/s | %s, %.4g %% of those owed | %s | **%s** | %.0f %% | %s, bare %s, **%.2f ×** |", thousands(viewers), thousands(rate),
		report.FormatCount(v["deliveries_per_second"]), 100*v["delivered"], report.InSeconds.Format(v["admission_p50"]), report.InSeconds.Format(v["admission_p99"]),
		100*v["server_cpu"], micros(v["cpu_per_frame"]), micros(v["frame_cpu_bare"]), v["cpu_per_frame"]/max(v["frame_cpu_bare"], 1e-9))
}

func memoryRows(r *report.Result) string {
	v := r.Values
	bytes := func(name string) string {
		x, ok := v[name]
		if !ok {
			return "–"
		}
		return report.FormatBytes(x)
	}
	return fmt.Sprintf("| resident, untouched | %s | %s |\n| resident, freed | **%s** | %s |\n| Go heap in use, freed | %s | |\n| goroutines | %.3f | %.0f |",
		bytes("memory_per_session"), bytes("memory_left"), bytes("memory_per_session_freed"), bytes("memory_left_freed"), bytes("heap_per_session"),
		v["goroutines_per_session"], v["goroutines_left"])
}

// write prints what was measured, and where.
func (t *ratioTable) write(w io.Writer) {
	if len(t.results) == 0 {
		return
	}
	e, busiest := t.results[0].Environment, 0.0
	for _, r := range t.results {
		busiest = max(busiest, r.Values["other_cpu"])
	}
	fmt.Fprintf(w, "\n%s, %d processors, %s, Linux %s; server on processor %s, load on %s; load average at the start %s.\nMedian (quartiles) of the rounds.\n",
		e.CPU, e.Processors, e.Go, e.Kernel, cmp.Or(t.o.serverCPUs, "any"), cmp.Or(t.o.loadCPUs, "any"), e.Load)
	if busiest > 0.15 {
		fmt.Fprintf(w, "Other processes of this machine took up to %.0f %% of a core meanwhile.\n", 100*busiest)
	}
	fmt.Fprint(w, t.text.String())
}

// spread is the median and the quartiles around it.
func spread(v []float64, format func(float64) string) string {
	if len(v) == 0 {
		return "–"
	}
	s := slices.Sorted(slices.Values(v))
	return fmt.Sprintf("%s (%s to %s)", format(report.Median(s)), format(s[(len(s)-1)/4]), format(s[len(s)-1-(len(s)-1)/4]))
}

// micros writes seconds in microseconds, so that a column has one unit.
func micros(v float64) string { return fmt.Sprintf("%.1f µs", v*1e6) }

// thousands writes 10000 as 10,000.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
