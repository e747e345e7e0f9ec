package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal returns a context that ends with the first SIGINT or SIGTERM. A second one ends the process at once. SIGHUP ends
// nothing: it is for the certificate, see [keyPair.watch].
// Signals are counted here rather than by signal.NotifyContext, which loses a second one that comes before it has let go
// of the first. The returned function gives the signals back.
func untilSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case sig := <-signals:
				if sig == syscall.SIGHUP {
					continue
				}
				if ctx.Err() != nil {
					os.Exit(exitFailed)
				}
				cancel()
			case <-over:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(over)
		<-ended
		cancel()
	}
}
