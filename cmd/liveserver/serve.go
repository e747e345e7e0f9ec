package main

import (
	"cmp"
	"context"
	"io"

	"liveroom/internal/config"
	"liveroom/internal/node"
)

// serve runs a node until ctx ends or a signal comes, and then drains it.
func serve(ctx context.Context, args []string, stdout, stderr io.Writer, environ []string) error {
	cfg, err := config.Load(args, environ, nil)
	if err != nil {
		return err
	}
	cfg.NodeID = node.ID(cfg)
	ctx, stop := untilSignal(ctx)
	defer stop()

	log := newLogger(stderr, cfg.Log, cfg.NodeID)
	n, err := node.Start(ctx, cfg, log)
	if err != nil {
		return err
	}
	if err := announce(stdout, cfg, n); err != nil {
		log.Warn("addresses not printed", "err", err)
	}
	failed := n.Wait(ctx)
	return cmp.Or(failed, n.Close())
}
