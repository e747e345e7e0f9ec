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
	switch args[0] {
	case natsCommand:
		return serveNATS(ctx, args[len(args)-1], stdout, stderr)
	case bareWriterCommand:
		return writeBare(stdout, stderr)
	case bareReaderCommand:
		return readBare(args[1], args[len(args)-1], stdout, stderr)
	case upgraderCommand:
		return upgradeBare(stdout, stderr)
	case "cluster":
		return cluster(ctx, args[1:], stdout, stderr)
	case "table":
		return printTable(ctx, args[1:], stdout, stderr)
	}
	sc, ok := scenarioNamed(args[0])
	if !ok {
		if args[0] == "-h" || args[0] == "-help" || args[0] == "--help" || args[0] == "help" {
			help(stdout)
			return exitOK
		}
		fmt.Fprintf(stderr, "loadtest: there is no scenario %q; -help lists them\n", args[0])
		return exitUsage
	}
	o, err := parseOptions(sc, args[1:], stdout)
	if err != nil {
		return badFlags(sc.name, err, stderr)
	}
	return report(ctx, o, stdout, stderr)
}

// report runs a scenario and says how it went.
func report(ctx context.Context, o *options, stdout, stderr io.Writer) int {
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
		result.Objectives = measurable(result.Objectives, result.Values)
	}
	met := judge(result.Objectives, result.Values)
	if need := o.spawn + 1; o.spawn > 1 && slices.ContainsFunc(result.Objectives, Objective.short) && runtime.NumCPU() < need {
		result.note("this machine is too small for the goals: %d processors for %d nodes, what they share and this tool", runtime.NumCPU(), o.spawn)
	}
	if werr := result.write(o, stdout); werr != nil {
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
	connecting := time.Duration(float64(o.viewers+o.frozen) / o.connectRate * 1e9)
	return 2*(connecting+o.scenario.lasts(o)) + 5*time.Minute
}
