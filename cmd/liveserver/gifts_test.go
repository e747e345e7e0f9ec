package main

import (
	"net/http"
	"strings"
	"testing"
)

// TestOnlyTheBackEndGives: with nothing said, a socket's gift is refused for that reason, the back end's is stored, and the log
// tells who comes from an earlier version.
func TestOnlyTheBackEndGives(t *testing.T) {
	t.Parallel()
	const told = "gifts that viewers' sockets send are refused"
	dir := t.TempDir()
	s := startUndecided(t, dir, "-config", write(t, "gifts: {catalogue: [{id: rose, name: Rose, price: 1}]}\n"))
	if !strings.Contains(s.logs.String(), told) {
		t.Errorf("not told at the start:\n%s", s.logs)
	}
	viewer := join(t, s.url, "demo", tokenFor(t, dir, "-sub", "ann"))
	if by := viewer.welcome.str("gift_authority"); by != "backend" {
		t.Errorf("welcome: gifts by %q", by)
	}
	if ack := viewer.ask("gift", `,"gift":"rose"`); ack.num("code") != http.StatusForbidden || ack.str("reason") != "gifts_by_backend" {
		t.Errorf("a socket's: %v", ack)
	}
	service := tokenFor(t, dir, "-sub", "shop", "-role", "service")
	if got := s.call(t, http.MethodPost, "/rooms/demo/gifts", service, `{"user":{"id":"ann"},"id":"1","gift":"rose"}`); got.status != http.StatusOK {
		t.Errorf("the back end's: %v", got)
	}
	viewer.wait("the gift", func(e event) bool { return e.kind() == "gift" })
	if chosen := startServer(t, "", "-gifts-authority", "backend"); strings.Contains(chosen.logs.String(), told) {
		t.Errorf("told although somebody decided:\n%s", chosen.logs)
	}
}
