package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// natsCommand is the argument that makes this program a NATS server: its own child, so that its processor time is
	// not this tool's.
	natsCommand = "nats-server"
	// childVariable is set in the environment of such a child, for a test binary, which finds its own flags there.
	childVariable = "LOADTEST_CHILD"
)

// serveNATS is a NATS server on a free loopback port, with streams under dir that sync every write as a node's embedded
// one does. It prints its URL and runs until ctx ends.
func serveNATS(ctx context.Context, dir string, stdout, stderr io.Writer) int {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		fmt.Fprintln(stderr, err)
		return exitMissed
	}
	s, err := server.NewServer(&server.Options{ServerName: "loadtest", Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir,
		SyncAlways: true, NoSigs: true, DisableJetStreamBanner: true})
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitMissed
	}
	s.SetLoggerV2(natsLog{stderr}, false, false, false)
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(startTimeout) {
		fmt.Fprintln(stderr, "the NATS server is not ready")
		return exitMissed
	}
	fmt.Fprintln(stdout, s.ClientURL())
	<-ctx.Done()
	return exitOK
}

// natsLog writes what is worth reading when the server fails.
type natsLog struct{ w io.Writer }

func (l natsLog) Fatalf(format string, v ...any) { fmt.Fprintf(l.w, "fatal: "+format+"\n", v...) }
func (l natsLog) Errorf(format string, v ...any) { fmt.Fprintf(l.w, "error: "+format+"\n", v...) }
func (l natsLog) Warnf(format string, v ...any)  { fmt.Fprintf(l.w, "warning: "+format+"\n", v...) }
func (natsLog) Noticef(string, ...any)           {}
func (natsLog) Debugf(string, ...any)            {}
func (natsLog) Tracef(string, ...any)            {}
