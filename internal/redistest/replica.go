package redistest

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

// Replica starts a server that follows this one, and returns when it has caught
// up.
func (s *Server) Replica(t testing.TB) *Server {
	t.Helper()
	host, port, _ := net.SplitHostPort(s.Addr)
	r := Start(t, "--replicaof", host+" "+port)
	r.CatchUp(s)
	return r
}

// CatchUp waits until the replica has all that its master has written.
func (s *Server) CatchUp(master *Server) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		if s.info("master_link_status") == "up" && s.info("master_repl_offset") == master.info("master_repl_offset") {
			return
		}
		if ctx.Err() != nil {
			s.t.Fatalf("the replica does not catch up: link %q", s.info("master_link_status"))
		}
		wait(ctx, 5*time.Millisecond)
	}
}

// Detach lets a replica hear no more of its master, and stay a replica: what the
// master writes from now on is what a fail-over loses.
func (s *Server) Detach() {
	s.t.Helper()
	s.Do("REPLICAOF", "127.0.0.1", "1") // where nobody listens
}

// Promote makes a replica a master.
func (s *Server) Promote() {
	s.t.Helper()
	s.Do("REPLICAOF", "NO", "ONE")
}

// Demote makes a master a replica of another, which then drops its own data.
func (s *Server) Demote(master *Server) {
	s.t.Helper()
	host, port, _ := net.SplitHostPort(master.Addr)
	s.Do("REPLICAOF", host, port)
}

func (s *Server) info(name string) string {
	text, _ := s.Client().Info(context.Background(), "replication").Result()
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
