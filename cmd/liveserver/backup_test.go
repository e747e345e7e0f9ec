package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestBackup: a backup that is taken while people give holds each gift that was acknowledged before it, and a node that starts on it
// knows them, their ids, rooms' settings, limits, revoked tokens and the secret.
func TestBackup(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "liveroom.backup")
	ann, bad := tokenFor(t, dir, "-sub", "ann"), tokenFor(t, dir, "-sub", "bad")
	s := startServer(t, dir)
	acked := map[string]int64{}
	c := join(t, s.url, "demo", ann)
	give := func(id string) {
		ack := c.askAs(id, "gift", `,"gift":"rose"`)
		if ack.num("code") != 200 {
			t.Fatalf("%s: %v", id, ack)
		}
		acked[id] = ack.num("seq")
	}
	for n := range 20 {
		give(fmt.Sprintf("g%d", n))
	}
	if ack := join(t, s.url, "demo", s.hostToken).ask("moderate", `,"action":"slow_mode","seconds":7`); ack.num("code") != 200 {
		t.Fatal(ack)
	}
	if res := s.call(t, http.MethodPost, "/sessions/revoke", s.adminToken, `{"user":"bad"}`); res.status >= 300 {
		t.Fatal(res)
	}
	body, tag := s.rulesWith(t, "danmaku-user-room", 3, 9)
	if res := s.call(t, http.MethodPut, "/limits/rules?override=true", s.adminToken, body, "If-Match", tag); res.status != 200 {
		t.Fatal(res)
	}
	var giving sync.WaitGroup
	for n := range 4 { // who may give more than a few would be refused
		meanwhile := join(t, s.url, "demo", tokenFor(t, dir, "-sub", fmt.Sprintf("u%d", n)))
		giving.Go(func() {
			for n := range 10 {
				meanwhile.askAs(fmt.Sprintf("b%d", n), "gift", `,"gift":"rose"`)
			}
		})
	}
	command := func(args ...string) (string, error) {
		out := &lines{}
		err := run(t.Context(), args, out, out, nil)
		return out.String(), err
	}
	admin := strings.TrimPrefix(s.admin, "http://")
	said, err := command("backup", file, "-data-dir", dir, "-admin-addr", admin)
	giving.Wait()
	if err != nil || !strings.Contains(said, "node n1") {
		t.Fatalf("backup: %s %v", said, err)
	}

	if said, err = command("restore", file, "-data-dir", dir); err == nil || !strings.Contains(err.Error(), "an empty directory to restore into") {
		t.Errorf("over a store: %s %v", said, err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(t.TempDir(), "half")
	if err := os.WriteFile(half, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	anew := t.TempDir()
	if said, err = command("restore", half, "-data-dir", anew); err == nil || !strings.Contains(err.Error(), "the backup is not whole") {
		t.Errorf("half of it: %s %v", said, err)
	}
	if err := os.MkdirAll(filepath.Join(anew, ".restoring", "nats", "jetstream"), 0o700); err != nil { // as a restore that was killed leaves it
		t.Fatal(err)
	}
	if said, err = command("restore", file, "-data-dir", anew, "-node-id", "n2"); err != nil || !strings.Contains(said, "gifts") {
		t.Fatalf("restore: %s %v", said, err)
	}

	again := startServer(t, anew, "-node-id", "n2")
	if _, ready := again.askAdmin(t, http.MethodGet, "/readyz", ""); !strings.Contains(ready, `"status":"ok"`) {
		t.Errorf("not well: %s", ready)
	}
	highest := int64(0)
	kept := map[int64]bool{}
	list, _ := again.call(t, http.MethodGet, "/rooms/demo/gifts?limit=1000", s.adminToken, "").body["gifts"].([]any)
	for _, g := range list {
		seq := event(g.(map[string]any)).num("seq")
		kept[seq], highest = true, max(highest, seq)
	}
	c = join(t, again.url, "demo", ann)
	for id, seq := range acked {
		if ack := c.askAs(id, "gift", `,"gift":"rose"`); !kept[seq] || ack.num("seq") != seq || ack["duplicate"] != true {
			t.Errorf("gift %s was %d and is %v; in the ledger: %t", id, seq, ack, kept[seq])
		}
	}
	if next := join(t, again.url, "demo", tokenFor(t, anew, "-sub", "eve")).askAs("new", "gift", `,"gift":"rose"`); next.num("code") != 200 || next.num("seq") <= highest+100 {
		t.Errorf("the next gift is %v, and the backup ends at %d", next, highest)
	}
	if slow := c.welcome.in("room").num("slow_mode_ms"); slow != 7000 {
		t.Errorf("settings %v", c.welcome)
	}
	if _, now := again.rulesWith(t, "danmaku-user-room", 3, 9); now != `"v2"` {
		t.Errorf("limits are at %s", now)
	}
	if code := again.call(t, http.MethodGet, "/rooms/demo/gifts", bad, "").status; code != http.StatusUnauthorized {
		t.Errorf("a revoked user's token: %d", code)
	}
}

// TestADirectoryOfALaterVersion: its data is left alone, and the sentence says by what and what to do.
func TestADirectoryOfALaterVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "version.json")
	for raw, want := range map[string]string{
		`{"format":99,"version":"liveserver v9.0.0"}`: "liveserver v9.0.0 has written " + dir + " in format 99",
		`{"format":0}`: "format 0",
		`{`:            "one whose version.json can be read",
	} {
		if err := os.WriteFile(name, []byte(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"serve", "check", "restore"} {
			args := []string{command}
			if command == "restore" {
				args = append(args, name)
			}
			out := &lines{}
			if err := run(t.Context(), append(args, serverArgs(dir)[2:]...), out, out, nil); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s with %s: %v", command, raw, err)
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("%s: %v %v", raw, left, err)
		}
	}
}
