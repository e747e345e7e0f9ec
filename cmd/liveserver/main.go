package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/redis/go-redis/v9/logging"

	"liveroom/internal/config"
	"liveroom/internal/node"
)

func main() {
	logging.Disable() // go-redis writes lines of its own; what they say comes as errors, too
	err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr, os.Environ())
	os.Exit(report(os.Stderr, err))
}

// run is the whole program. It returns when the subcommand is done, which for serve is after ctx ended or a signal
// came, and everything was taken down. environ is the environment as os.Environ gives it: a single look-up could not
// find a misspelt variable.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, environ []string) error {
	command := "serve"
	if len(args) == 1 && strings.TrimLeft(args[0], "-") == "version" {
		command, args = "version", nil
	}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		command, args = args[0], args[1:]
	}
	var err error
	switch command {
	case "serve":
		err = serve(ctx, args, stdout, stderr, environ)
	case "token":
		err = printToken(ctx, args, stdout, environ)
	case "check":
		err = check(args, stdout, environ)
	case "health":
		err = health(ctx, args, stdout, environ)
	case "doctor":
		err = doctor(ctx, args, stdout, environ)
	case "top":
		err = watch(ctx, args, stdout, environ)
	case "hook-test":
		err = testHooks(ctx, args, stdout, environ)
	case "backup":
		err = backUp(ctx, args, stdout, environ)
	case "restore":
		err = restore(ctx, args, stdout, stderr, environ)
	case "version":
		err = version(args, stdout)
	case "help":
		err = config.ErrHelp
	default:
		return config.Fault{Path: "command", Sentence: fmt.Sprintf("there is no command %q: it is serve, token, check, health, hook-test, doctor, top, backup, restore or version (liveserver -help)", command)}
	}
	if errors.Is(err, config.ErrHelp) {
		if command == "token" {
			tokenUsage(stdout)
		} else {
			usage(stdout)
		}
		return nil
	}
	return err
}

func usage(w io.Writer) {
	fmt.Fprint(w, `liveserver is a live-room server.

  liveserver [serve] [flags]   run the server until SIGTERM or SIGINT
  liveserver token [flags]     print a signed token: -sub U -role viewer|host|moderator|service|admin
                               -rooms a,b or '*' -name N -ttl 12h
  liveserver check [flags]     validate a configuration without starting
  liveserver health [flags]    ask the server on this machine whether it lives; -ready: whether it wants traffic
  liveserver doctor [flags]    examine what a node of this configuration needs, and say what to do
  liveserver top [flags]       show the running server in this terminal, refreshing; -once: as text, once; -every 2s -sort viewers|messages|gifts|name;
                               another node: -url http://host:8081 and, signed elsewhere, -token T; -client-cert, -client-key
  liveserver hook-test [flags] ask the configured hooks what a server asks, and say what is wrong with the answers; -user U pays for
                               the sample, and -pay takes the price in the end
  liveserver backup FILE [flags]
                               write all that the running server keeps into FILE; -client-cert, -client-key: for admin_tls.client_ca
  liveserver restore FILE [flags]
                               fill an empty data directory from FILE, before the server starts on it
  liveserver version [FILE]    print what was built, of which modules; -sbom: as CycloneDX JSON

A flag wins over the environment, which wins over the file, which wins over the default.

`)
	config.Usage(w)
}

// check reads everything a start would read and starts nothing.
func check(args []string, stdout io.Writer, environ []string) error {
	cfg, err := config.Load(args, environ, nil)
	if err != nil {
		return err
	}
	rules, err := node.Check(cfg)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "The configuration is valid: %d gifts, %d limit rules.\n", len(cfg.Gifts.Catalogue), rules)
	return err
}

// Exit codes. What an operator can mend in the configuration is told apart from what broke while running.
const (
	exitFailed = 1
	exitConfig = 2
)

// report writes err, one line per fault and without passwords, and returns the exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	for line := range strings.Lines(config.Redact(err.Error())) {
		fmt.Fprintln(stderr, "liveserver: "+strings.TrimSpace(line))
	}
	var faults config.Faults
	var fault config.Fault
	if errors.As(err, &faults) || errors.As(err, &fault) {
		return exitConfig
	}
	return exitFailed
}
