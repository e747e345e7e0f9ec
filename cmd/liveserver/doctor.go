package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"liveroom/internal/config"
	"liveroom/internal/node"
)

// doctor prints what an examination finds, and fails when a node would not start or not hold what it promises.
func doctor(ctx context.Context, args []string, stdout io.Writer, environ []string) error {
	cfg, err := config.Load(args, environ, nil)
	if err != nil {
		return err
	}
	grave := 0
	for _, f := range node.Examine(ctx, cfg) {
		mark := "ok  "
		switch {
		case f.Grave:
			mark = "BAD "
			grave++
		case f.Do != "":
			mark = "look"
		}
		fmt.Fprintf(stdout, "%s  %s: %s\n", mark, f.About, config.Redact(f.Said))
		if f.Do != "" {
			fmt.Fprintf(stdout, "      → %s\n", f.Do)
		}
	}
	if grave > 0 {
		return errors.New("mend first what is marked BAD")
	}
	return nil
}
