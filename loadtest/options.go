package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"time"

	"liveroom/loadtest/internal/client"
	"liveroom/loadtest/internal/report"
)

// options is everything a run can be told. The flags' texts document the fields.
type options struct {
	scenario scenario
	serverOptions
	crowdOptions
	speechOptions

	json, report string
	objectives   []report.Objective
	asked        bool // the objectives were stated by the user, not by the scenario
	quiet        bool
	timeout      time.Duration
}

type serverOptions struct {
	urls, admins         []string
	secret               string
	pids                 []int
	compress, insecure   bool
	tls                  bool
	spawn                int
	server, serverLog    string
	rules, nats, redis   string
	serverCPUs, loadCPUs string
	serverArgs           string
	syncDelay            time.Duration
	drain, settle        time.Duration
	before               string
	kill                 bool
}

type crowdOptions struct {
	viewers, timed, rooms       int
	room                        string
	connectRate, churn          float64
	connectors, sources, frozen int
	readers                     int
	hold                        time.Duration
}

type speechOptions struct {
	rate, peak                   float64
	senders                      int
	mix                          client.Mix
	gift                         string
	duration, warmup, rise, calm time.Duration
	poisson, bare                bool
	rounds, points, from, size   int
	bound                        bound
	seed                         uint64
}

// parseOptions reads the arguments behind the scenario's name.
func parseOptions(sc scenario, args []string, usage io.Writer) (*options, error) {
	o := &options{scenario: sc}
	set := flag.NewFlagSet("loadtest "+sc.name, flag.ContinueOnError)
	o.serverFlags(set)
	o.loadFlags(set)
	if err := set.Parse(strings.Fields(sc.flags)); err != nil {
		panic("loadtest: the flags of " + sc.name + ": " + err.Error()) // a fault of the scenario's
	}
	set.VisitAll(func(f *flag.Flag) { f.DefValue = f.Value.String() })
	o.asked = false
	if err := parseFlags(set, sc.about, args, usage); err != nil {
		return nil, err
	}
	return o, errors.Join(o.validate()...)
}

// parseFlags reads args; a call for help is answered on usage.
func parseFlags(set *flag.FlagSet, about string, args []string, usage io.Writer) error {
	set.SetOutput(io.Discard)
	err := set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		set.SetOutput(usage)
		fmt.Fprintf(usage, "%s: %s\n\n", set.Name(), about)
		set.PrintDefaults()
	case err == nil && set.NArg() > 0:
		return fmt.Errorf("%q is no flag", set.Arg(0))
	}
	return err
}

// badFlags tells of arguments that were not taken, and returns the exit code. Help that was asked for is no fault.
func badFlags(command string, err error, stderr io.Writer) int {
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	fmt.Fprintf(stderr, "loadtest %s: %v\n", command, err)
	return exitUsage
}

// parsed is a flag whose text is read by parse.
type parsed[T any] struct {
	into  *T
	text  string
	parse func(string) (T, error)
}

func (p *parsed[T]) String() string { return p.text }

func (p *parsed[T]) Set(s string) (err error) {
	p.text = s
	*p.into, err = p.parse(s)
	return err
}

// parsedVar adds such a flag.
func parsedVar[T any](set *flag.FlagSet, into *T, name, value, usage string, parse func(string) (T, error)) {
	p := &parsed[T]{into: into, parse: parse}
	if err := p.Set(value); err != nil {
		panic("loadtest: the default of -" + name + ": " + err.Error()) // a fault of the scenario's
	}
	set.Var(p, name, usage)
}

func (o *options) serverFlags(set *flag.FlagSet) {
	parsedVar(set, &o.urls, "url", "", "a running server's address like http://localhost:8080; several with commas", split)
	parsedVar(set, &o.admins, "admin", "", "its admin address, for metrics; several with commas, in the same order", split)
	set.StringVar(&o.secret, "secret", "", "its auth.secret, to sign the viewers' tokens; empty: guests, who send no gifts")
	parsedVar(set, &o.pids, "pid", "", "its process, for memory and CPU; several with commas; empty: what its metrics say", numbers)
	set.BoolVar(&o.compress, "compress", false, "take deflated frames, as browsers do, and count the bytes that come")
	set.BoolVar(&o.insecure, "insecure", false, "accept any TLS certificate")
	set.IntVar(&o.spawn, "spawn", 0, "start so many nodes instead")
	set.BoolVar(&o.tls, "tls", false, "the nodes started speak TLS, with a certificate that is made for the run")
	o.startFlags(set)
	set.DurationVar(&o.syncDelay, "sync-delay", 0, "gifts: how much longer each sync of the node's disk takes (Linux, strace)")
	set.BoolVar(&o.kill, "kill", false, "gifts: end the node by kill -9 in the middle, and start it again for its ledger")
	set.DurationVar(&o.drain, "drain", time.Second, "over which a node started sends its viewers away when it ends")
	set.DurationVar(&o.settle, "settle", 0, "rolling: between a node's return and the next one's end")
	set.StringVar(&o.before, "before", "", "rolling: the liveserver that runs before the restart, for an upgrade; empty: the same")
	set.StringVar(&o.loadCPUs, "load-cpus", "", "Linux: processors for this tool")
}

// startFlags are about the nodes that are started.
func (o *serverOptions) startFlags(set *flag.FlagSet) {
	set.StringVar(&o.server, "server", "", "the liveserver to start; empty: build it from this module")
	set.StringVar(&o.rules, "rules", "", "limit rules of the nodes started, a file; empty: the scenario's own, of a cluster those that ship")
	set.StringVar(&o.nats, "nats", "", "NATS of the nodes started; empty: several get one of their own, one has it inside")
	set.StringVar(&o.redis, "redis", "", "Redis of the nodes started; empty: several get one of their own, one needs none")
	set.StringVar(&o.serverArgs, "server-args", "", "more arguments of the nodes started, between spaces, like \"-events-danmaku off\"")
	set.StringVar(&o.serverLog, "server-log", "", "file for what the nodes started write; empty: only shown when one fails")
	set.StringVar(&o.serverCPUs, "server-cpus", "", "Linux: processors for the nodes started, like 0 or 0,1")
}

func (o *options) loadFlags(set *flag.FlagSet) {
	set.IntVar(&o.viewers, "viewers", 1, "sessions, each of a user of its own")
	set.IntVar(&o.rooms, "rooms", 1, "rooms they are spread over")
	set.StringVar(&o.room, "room", "", "name of the room, or of the first part of several; empty: a fresh one")
	set.Float64Var(&o.rate, "rate", 0, "attempts per second, all classes; quota: 0 is 1.5 times the quota; frames: frames per second to all viewers together")
	set.IntVar(&o.timed, "timed", 1000, "about so many viewers' receipts are timed, spread evenly over all; every viewer's are counted and checked")
	set.IntVar(&o.senders, "senders", 0, "viewers who send; 0: so many that each sends once in two seconds")
	set.StringVar(&o.gift, "gift", "rose", "the gift that is given")
	set.DurationVar(&o.duration, "duration", time.Second, "how long is measured; quota: one stage of nine")
	set.DurationVar(&o.warmup, "warmup", 0, "how long before that the same is done without measuring")
	set.Float64Var(&o.connectRate, "connect-rate", 1000, "connects per second")
	set.IntVar(&o.connectors, "connectors", 64, "dials at the same time")
	set.IntVar(&o.sources, "sources", 0, "loopback addresses to connect from, each in its own /24 (Linux); 0: as many as ports require")
	set.IntVar(&o.readers, "readers", 0, "reading threads; 0: one per processor")
	set.BoolVar(&o.poisson, "poisson", false, "random gaps between attempts instead of even ones")
	set.Float64Var(&o.peak, "peak", 0, "pulse: attempts per second at its height; quota: 0 is 10 times the quota")
	set.DurationVar(&o.rise, "rise", 0, "pulse: how long the rate rises, and falls")
	set.DurationVar(&o.calm, "calm", 0, "pulse: time before and after")
	set.IntVar(&o.rounds, "rounds", 0, "churn, slow, fair, frames: repetitions")
	set.IntVar(&o.points, "points", 0, "ramp: at how many sizes memory is read")
	set.IntVar(&o.from, "from", 0, "ramp: the first size, when -viewers is more")
	set.DurationVar(&o.hold, "hold", 0, "ramp, churn: rest before memory is read")
	set.IntVar(&o.size, "size", 128, "frames: bytes of a frame, about")
	set.BoolVar(&o.bare, "bare", false, "fanout: then measure a bare write(2) loop with frames of the same size (Linux)")
	set.IntVar(&o.frozen, "frozen", 0, "slow, soak: readers that stop reading")
	set.Float64Var(&o.churn, "churn", 0, "soak, fair: sessions that come and go, per second")
	parsedVar(set, &o.mix, "mix", "danmaku=1", "share of each class among the attempts", client.ParseMix)
	parsedVar(set, &o.objectives, "slo", "", "objectives, like gift_loss=0,~p99=200ms; one missed: exit 1, but for a goal (~), which is only told", func(s string) ([]report.Objective, error) {
		o.asked = true
		return report.ParseObjectives(s)
	})
	parsedVar(set, &o.bound, "bound", "", "the room's danmaku quota as RATE,BURST, to check the admitted against; empty: that of -rules when nodes are spawned; "+
		"quota with -spawn: the quota to set up", parseBound)
	set.Uint64Var(&o.seed, "seed", 1, "of everything drawn: texts, classes, gaps; the same seed repeats a run")
	set.StringVar(&o.json, "json", "", "file for the result as JSON; - is standard output")
	set.StringVar(&o.report, "report", "", "directory for the result as one HTML page")
	set.BoolVar(&o.quiet, "quiet", false, "no progress")
	set.DurationVar(&o.timeout, "timeout", 0, "the run's end in any case; 0: its expected time and some minutes")
}

func split(s string) (out []string, err error) {
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out, nil
}

func numbers(s string) (out []int, err error) {
	parts, _ := split(s)
	for _, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("want numbers with commas, have %q", s)
		}
		out = append(out, n)
	}
	return out, nil
}

// spareDescriptors are those this process needs besides its sockets.
const spareDescriptors = 100

// validate returns everything that is wrong.
func (o *options) validate() []error {
	var faults []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	want((o.spawn > 0) != (len(o.urls) > 0), "give either -url or -spawn")
	want(o.serverArgs == "" || o.spawn > 0, "-server-args are of nodes that -spawn starts")
	want(o.viewers > 0, "-viewers must be above 0")
	want(o.rooms > 0 && o.rooms < 1<<15, "-rooms must be 1 to 32767")
	want(o.rate >= 0 && o.peak >= 0 && o.churn >= 0, "rates must not be negative")
	want(o.connectRate > 0 && o.connectors > 0, "-connect-rate and -connectors must be above 0")
	want(o.duration > 0 && o.warmup >= 0 && o.calm >= 0 && o.hold >= 0, "-duration must be above 0, other times not below")
	want(o.timed > 0, "-timed must be above 0")
	want(o.senders >= 0 && o.senders <= o.viewers, "-senders must be 0 to %d, the number of viewers", o.viewers)
	want(o.frozen >= 0 && o.sources >= 0 && o.readers >= 0, "counts must not be negative")
	want(o.mix[client.Gift] == 0 || o.spawn > 0 || o.secret != "", "guests send no gifts: give -secret, or a -mix without gifts")
	most := client.Descriptors() - spareDescriptors
	need := o.viewers + o.frozen
	if o.scenario.extra != nil {
		need += o.scenario.extra(o)
	}
	want(need <= most, "%d sessions do not fit: a process may have %d files open here (ulimit -n) and keeps %d for itself, so at most %d; "+
		"raise the limit, or run several of this tool against one -url", need, client.Descriptors(), spareDescriptors, most)
	o.fill()
	return faults
}

// fill replaces the zeros that mean "what fits".
func (o *options) fill() {
	const portsPerAddress = 20_000 // Linux' ephemeral range has 28,232, some of them in TIME_WAIT
	if o.sources == 0 {
		o.sources = 1 + (o.viewers+o.frozen-1)/portsPerAddress
	}
	if o.readers == 0 {
		o.readers = runtime.GOMAXPROCS(0)
	}
	if o.senders == 0 {
		o.senders = min(o.viewers, max(1, int(2*max(o.rate, o.peak))))
	}
}
