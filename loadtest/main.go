package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"liveroom/loadtest/internal/client"
	"liveroom/loadtest/internal/process"
	"liveroom/loadtest/internal/report"
)

// Exit codes.
const (
	exitOK     = 0
	exitMissed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal has its usual effect
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole tool. The end of ctx ends a run early, with the summary of what was measured until then.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		help(stderr)
		return exitUsage
	}
	if child, ok := children[args[0]]; ok {
		if err := child(ctx, args[1:], stdout, stderr); err != nil {
			fmt.Fprintln(stderr, err)
			return exitMissed
		}
		return exitOK
	}
	switch args[0] {
	case "cluster":
		return cluster(ctx, args[1:], stdout, stderr)
	case "table":
		return printTable(ctx, args[1:], stdout, stderr)
	}
	sc, ok := scenarioNamed(args[0])
	switch {
	case ok:
	case slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]):
		help(stdout)
		return exitOK
	default:
		fmt.Fprintf(stderr, "loadtest: there is no scenario %q; -help lists them\n", args[0])
		return exitUsage
	}
	o, err := parseOptions(sc, args[1:], stdout)
	if err != nil {
		return badFlags(sc.name, err, stderr)
	}
	return conduct(ctx, o, stdout, stderr)
}

// children are what this program is where it has started itself.
var children = map[string]func(ctx context.Context, args []string, stdout, stderr io.Writer) error{
	process.NATSCommand: func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		return process.ServeNATS(ctx, args[0], stdout, stderr)
	},
	bareWriterCommand: func(_ context.Context, _ []string, stdout, _ io.Writer) error { return writeBare(stdout) },
	bareReaderCommand: func(_ context.Context, args []string, stdout, _ io.Writer) error {
		return readBare(args[0], args[1], stdout)
	},
	upgraderCommand: func(_ context.Context, _ []string, stdout, _ io.Writer) error { return upgradeBare(stdout) },
}

// conduct runs a scenario and says how it went.
func conduct(ctx context.Context, o *options, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithTimeoutCause(ctx, o.deadline(), errTimeout)
	defer cancel()
	result, err := perform(ctx, o, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "loadtest %s: %v\n", o.scenario.name, err)
	}
	if result == nil {
		return exitMissed
	}
	if !o.asked {
		result.Objectives = report.Measurable(result.Objectives, result.Values)
	}
	met := report.Judge(result.Objectives, result.Values)
	if need := o.spawn + 1; o.spawn > 1 && slices.ContainsFunc(result.Objectives, report.Objective.Short) && runtime.NumCPU() < need {
		result.Note("this machine is too small for the goals: %d processors for %d nodes, what they share and this tool", runtime.NumCPU(), o.spawn)
	}
	if werr := result.Write(o.json, o.report, stdout); werr != nil {
		fmt.Fprintf(stderr, "loadtest %s: %v\n", o.scenario.name, werr)
		return exitMissed
	}
	if err != nil || !met || result.Values["quota_excess"] > 0 || result.Values["user_excess"] > 0 {
		return exitMissed
	}
	return exitOK
}

// deadline bounds the run: what it should take, and some minutes for a build, a slow machine and the farewells.
func (o *options) deadline() time.Duration {
	if o.timeout > 0 {
		return o.timeout
	}
	trials := max(1, o.scenario.trials, 2*(o.rounds+1), 2*(o.points+2))
	connecting := time.Duration(float64(o.viewers+o.frozen) / o.connectRate * 1e9)
	each := o.warmup + 2*(o.calm+o.rise) + o.duration + o.hold + time.Duration(o.spawn)*(o.drain+o.settle) + freeRest + 2*connecting + 2*client.LeaveTimeout
	return 2*time.Duration(trials)*each + 5*time.Minute
}
