package main

import (
	"cmp"
	"context"
	"io"

	"liveroom/internal/config"
)

// serve runs a node until ctx ends or a signal comes, and then drains it.
func serve(ctx context.Context, args []string, stdout, stderr io.Writer, environ []string) error {
	cfg, err := config.Load(args, environ, nil)
	if err != nil {
		return err
	}
	cfg.NodeID = nodeID(cfg)
	ctx, stop := untilSignal(ctx)
	defer stop()

	n, err := start(ctx, cfg, newLogger(stderr, cfg.Log, cfg.NodeID))
	if err != nil {
		return err
	}
	if err := announce(stdout, cfg, n.ln, n.tokens); err != nil {
		n.log.Warn("addresses not printed", "err", err)
	}
	failed := n.wait(ctx)
	return cmp.Or(failed, n.drain())
}
