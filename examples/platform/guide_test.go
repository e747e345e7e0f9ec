package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var fence = regexp.MustCompile("(?s)\n```(sh|js)(?: ([a-z.]+))?\n(.*?)```")

// TestTheGuide runs what docs/integrate.md shows, in its order, against a server.
func TestTheGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/integrate.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Fatal("the guide needs Node 20 or newer: sudo apt-get install nodejs")
	}
	dir, script := t.TempDir(), "set -eux\n"
	for _, m := range fence.FindAllStringSubmatch(string(page), -1) {
		if m[1] == "sh" {
			script += m[3]
		} else if err := os.WriteFile(filepath.Join(dir, m[2]), []byte(m[3]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary := server(t)
	secret := "a secret of thirty-two characters"
	at := serve(t, binary, []string{"LIVEROOM_AUTH_SECRET=" + secret})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "LIVEROOM="+at, "LIVEROOM_AUTH_SECRET="+secret, "PLATFORM_PORT="+freePort(t))
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "WRONG") || !strings.Contains(string(out), "ok     hook_danmaku: one of 64") || !strings.Contains(string(out), "ok     hook_gift: a further reserve is told that the key is paid for") || !strings.Contains(string(out), `"gift":"rose","count":3`) {
		t.Errorf("%v\n%s", err, out)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}
