package main

import (
	"errors"
	"strings"
	"testing"

	"liveroom/internal/config"
)

// TestTop: what a node shows of itself in a terminal is what goes through it; a pipe has it as text, once. Anybody with an admin's token
// may look from elsewhere, and nobody else.
func TestTop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	c := join(t, s.url, "demo", tokenFor(t, dir, "-sub", "ann"))
	c.ask("danmaku", `,"text":"counted"`)
	admin := strings.TrimPrefix(s.admin, "http://")
	top := func(args ...string) (string, error) {
		out := &lines{}
		err := run(t.Context(), append([]string{"top", "-every", "200ms"}, args...), out, out, nil)
		return out.String(), err
	}
	for name, args := range map[string][]string{
		"here":           {"-data-dir", dir, "-admin-addr", admin, "-once"},
		"from elsewhere": {"-data-dir", t.TempDir(), "-url", s.admin, "-token", s.adminToken},
	} {
		out, err := top(args...)
		if err != nil || !strings.HasPrefix(out, "liveroom n1  ok  up ") || !strings.Contains(out, "\nsessions 1  users 1  rooms 1  ") || !strings.Contains(out, "\nNATS connected  nodes 1  Redis not asked") ||
			!strings.Contains(out, "\ndemo                            1") || strings.Contains(out, "\x1b") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	if out, err := top("-url", s.admin, "-token", "nobody's"); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("with a bad token: %v\n%s", err, out)
	}
	if _, err := top("-url", "http://127.0.0.1:1", "-token", "x"); err == nil || !strings.Contains(err.Error(), "no server answers at http://127.0.0.1:1") {
		t.Errorf("nobody there: %v", err)
	}
	for _, bad := range [][]string{{"-every", "1ms"}, {"-sort", "size"}, {"-url", "localhost:8081"}, {"-client-cert", "none", "-client-key", "none"}} {
		var fault config.Fault
		if _, err := top(append(bad, "-data-dir", dir)...); !errors.As(err, &fault) || fault.Path != bad[0][1:] {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
