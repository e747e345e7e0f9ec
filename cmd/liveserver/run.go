package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"liveroom/internal/config"
	"liveroom/internal/node"
)

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
	case "version":
		_, err = fmt.Fprintln(stdout, node.Version())
	case "help":
		err = config.ErrHelp
	default:
		return config.Fault{Path: "command", Sentence: fmt.Sprintf("there is no command %q: it is serve, token, check or version (liveserver -help)", command)}
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
  liveserver version           print what was built

A flag wins over the environment, which wins over the file, which wins over the default.

`)
	config.Usage(w)
}
