package main

import (
	"context"
	"log/slog"
	"os"

	"liveroom/internal/config"
	"liveroom/internal/node"
)

// reload is what SIGHUP asks for: what may change while a node runs is read again, and what may not is named.
type reload struct {
	args, environ []string
	inForce       config.Config
	level         *slog.LevelVar
	node          *node.Node
	log           *slog.Logger
}

// when reads again each time it is asked to, until ctx ends.
func (r *reload) when(ctx context.Context, asked <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
			r.now()
		}
	}
}

// now reads the configuration and has the node read its files.
func (r *reload) now() {
	r.node.Reread()
	c, err := config.Load(r.args, r.environ, nil)
	if err != nil {
		r.log.Error("the configuration can't be used, all stays as it was", "err", err)
		return
	}
	c.NodeID = r.inForce.NodeID // of one that is not named, a part is made up at start
	taken, later := []string{}, []string{}
	for _, key := range config.Changed(r.inForce, c) {
		if key == "log.level" {
			taken = append(taken, key)
			continue
		}
		later = append(later, key)
	}
	r.inForce.Log.Level = c.Log.Level
	next := levelOf(c.Log)
	r.level.Set(min(next, r.level.Level())) // the line is written by the level that writes more
	r.log.Info("read again", "taken", taken, "after_a_restart", later)
	r.level.Set(next)
}
