package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"liveroom/internal/config"
	"liveroom/internal/node"
)

// errHook is what a hook-test ends with that has found something.
var errHook = errors.New("the hook does not answer as docs/integrate.md says")

// testHooks asks the configured hooks what a server would ask them.
func testHooks(ctx context.Context, args []string, stdout io.Writer, environ []string) error {
	sample := node.HookSample{}
	cfg, err := config.Load(args, environ, func(set *flag.FlagSet) {
		set.StringVar(&sample.User, "user", "hook-test", "")
		set.BoolVar(&sample.Pay, "pay", false, "")
	})
	if err != nil {
		return err
	}
	good, err := node.TestHooks(ctx, cfg, sample, func(step string, wrong error) {
		if wrong != nil {
			fmt.Fprintf(stdout, "WRONG  %s: %v\n", step, wrong)
			return
		}
		fmt.Fprintf(stdout, "ok     %s\n", step)
	})
	if err == nil && !good {
		err = errHook
	}
	return err
}
