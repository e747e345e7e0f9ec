package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

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
	asked := make(chan os.Signal, 1)
	ctx, hurry, stop := untilSignals(ctx, asked)
	defer stop()

	level := &slog.LevelVar{}
	log := newLogger(stderr, cfg.Log, level, cfg.NodeID)
	n, err := node.Start(ctx, cfg, log)
	if err != nil {
		return err
	}
	reload := reload{args: args, environ: environ, inForce: cfg, level: level, node: n, log: log}
	running, end := context.WithCancel(ctx)
	var reloading sync.WaitGroup
	reloading.Go(func() { reload.when(running, asked) })
	defer func() { end(); reloading.Wait() }()
	if err := announce(stdout, cfg, n); err != nil {
		log.Warn("addresses not printed", "err", err)
	}
	return n.Run(ctx, hurry)
}

// lastPatience is how long a node that is told to hurry may take before the process ends all the same.
const lastPatience = 5 * time.Second

// untilSignals returns a context that ends with the first SIGINT or SIGTERM, and one that ends with the second; a third ends the
// process at once. SIGHUP ends nothing and is passed on, see reload. Signals are counted here rather than by
// signal.NotifyContext, which loses a second one that comes before it has let go of the first. stop gives the signals back.
func untilSignals(ctx context.Context, hangups chan<- os.Signal) (first, second context.Context, stop func()) {
	first, end := context.WithCancel(ctx)
	second, hurry := context.WithCancel(context.WithoutCancel(ctx))
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		var late <-chan time.Time
		for {
			select {
			case sig := <-signals:
				switch {
				case sig == syscall.SIGHUP:
					select {
					case hangups <- sig:
					default: // one is waiting, and will read what there is then
					}
				case first.Err() == nil:
					end()
				case late == nil:
					hurry()
					late = time.After(lastPatience)
				default:
					os.Exit(exitFailed)
				}
			case <-late:
				os.Exit(exitFailed)
			case <-over:
				return
			}
		}
	}()
	return first, second, func() {
		signal.Stop(signals)
		close(over)
		<-ended
		end()
		hurry()
	}
}

// newLogger writes what the configuration asks for to w. level may change.
func newLogger(w io.Writer, c config.Log, level *slog.LevelVar, node string) *slog.Logger {
	level.Set(levelOf(c))
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: withoutPasswords}
	var h slog.Handler = slog.NewJSONHandler(w, opts)
	if c.Format == "text" {
		h = slog.NewTextHandler(w, opts)
	}
	return slog.New(h).With("node", node)
}

func levelOf(c config.Log) (level slog.Level) {
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		return slog.LevelInfo // config.Validate allows only names that slog knows
	}
	return level
}

// withoutPasswords hides those of URLs, which errors of libraries repeat.
func withoutPasswords(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(config.Redact(v))
	case error:
		a.Value = slog.StringValue(config.Redact(v.Error()))
	}
	return a
}
