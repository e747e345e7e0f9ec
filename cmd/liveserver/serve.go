package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"strings"

	"liveroom/internal/config"
	"liveroom/protocol"
)

// serve runs a node until ctx ends or a signal comes, and then drains it.
func serve(ctx context.Context, args []string, stdout, stderr io.Writer, environ []string) error {
	cfg, err := config.Load(args, environ, nil)
	if err != nil {
		return err
	}
	cfg.NodeID = cmp.Or(cfg.NodeID, hostID())
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

// hostID makes an identifier of the host's name.
func hostID() string {
	name, err := os.Hostname()
	if err != nil {
		return "n1"
	}
	id := strings.Map(func(r rune) rune {
		if r < 128 && protocol.ValidRoom(string(r)) {
			return r
		}
		return '-'
	}, name)
	return cmp.Or(id[:min(len(id), protocol.MaxIdentifier)], "n1")
}
