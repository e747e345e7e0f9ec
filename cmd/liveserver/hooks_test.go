package main

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestThePlatformSaysWhoComesInAndWhatIsShown, on both of two nodes; while its process is killed, what was configured happens, gifts
// and the platform's own danmaku go on, and /readyz names what is away; once it is back it is asked again.
func TestThePlatformSaysWhoComesInAndWhatIsShown(t *testing.T) {
	platform := newWallet(t, 0)
	const key = "0123456789abcdef"
	at := "http://" + platform.address + "/hooks"
	rules := write(t, "rules:\n  - {name: all, action: [danmaku, gift, like, join], scope: room, rate: 100000, burst: 100000}\n")
	nodes := startNodes(t, 2, "-limits-file", rules, "-auth-secret", key, "-protocol-attributes", "level", "-hooks-secrets", walletSecret,
		"-hooks-join-url", at, "-hooks-join-timeout", "2s", "-hooks-danmaku-url", at, "-hooks-danmaku-timeout", "2s", "-hooks-danmaku-on-timeout", "sender_only")
	as := func(user string) string { return tokenFor(t, t.TempDir(), "-auth-secret", key, "-sub", user) }
	ann, bob := join(t, nodes[0].url, "demo", as("ann")), join(t, nodes[1].url, "demo", as("bob"))
	if level := ann.welcome.in("user").in("attrs").num("level"); level != 7 {
		t.Errorf("came in as %v", ann.welcome.in("user"))
	}
	mod := join(t, nodes[1].url, "demo", as("mod"))
	if role := mod.welcome.in("user").str("role"); role != "moderator" {
		t.Errorf("came in as %v", mod.welcome.in("user"))
	}
	if e := mod.ask("moderate", `,"action":"mute","user":"x","seconds":60`); e.num("code") != http.StatusOK {
		t.Errorf("a moderator by the platform: %v", e)
	}
	quiet := join(t, nodes[0].url, "demo", as("quiet"))
	quiet.wait("that it is muted", func(e event) bool { return e.kind() == "muted" && e.num("seconds") == 60 })
	if e := quiet.ask("danmaku", `,"text":"psst"`); e.str("reason") != "muted" {
		t.Errorf("a muted one: %v", e)
	}
	hello := func(user string) event {
		c := dial(t, nodes[0].url, nil)
		return c.askAs("h", "hello", fmt.Sprintf(`,"room":"demo","token":%q`, as(user)))
	}
	if e := hello("out"); e.str("reason") != "rejected" || !strings.HasSuffix(e.str("msg"), ": members only") {
		t.Errorf("who is not wanted: %v", e)
	}

	if e := ann.ask("danmaku", `,"text":"replace this"`); e.num("code") != http.StatusOK {
		t.Errorf("a replaced one: %v", e)
	}
	bob.wait("what was replaced", func(e event) bool {
		return e.kind() == "danmaku" && e.str("text") == "***" && e.in("user").in("attrs").num("level") == 7
	})
	if e := bob.ask("danmaku", `,"text":"refuse this"`); e.num("code") != http.StatusForbidden || e.str("reason") != "rejected" || !strings.HasSuffix(e.str("msg"), ": be nice") {
		t.Errorf("a refused one: %v", e)
	}
	if e := bob.ask("danmaku", `,"text":"hold this"`); e.num("code") != http.StatusAccepted || e.str("reason") != "held" {
		t.Errorf("a held one: %v", e)
	}
	mod.wait("that it waits", func(e event) bool {
		return e.kind() == "held" && e.str("cause") == "hook" && e.str("text") == "hold this"
	})

	platform.kill()
	await(t, "a platform that is known to be away", func() bool {
		e := ann.ask("danmaku", `,"text":"`+rand.Text()+`"`)
		if e.num("code") != http.StatusAccepted {
			t.Errorf("without a platform: %v", e)
		}
		_, ready := nodes[0].askAdmin(t, http.MethodGet, "/readyz", "")
		return strings.Contains(ready, `"degraded":["hook_danmaku"]`)
	})
	ann.wait("its own alone", func(e event) bool { return e.kind() == "danmaku" && e["hidden"] == true })
	if e := ann.ask("gift", `,"gift":"rose"`); e.num("code") != http.StatusOK {
		t.Errorf("a gift meanwhile: %v", e)
	}
	if got := nodes[0].call(t, http.MethodPost, "/rooms/demo/danmaku", tokenFor(t, t.TempDir(), "-auth-secret", key, "-sub", "shop", "-role", "service"), `{"user":{"id":"carol"},"id":"1","text":"replace nothing"}`); got.status != http.StatusOK {
		t.Errorf("the platform's own: %v", got)
	}
	bob.wait("it, as it is", func(e event) bool { return e.kind() == "danmaku" && e.str("text") == "replace nothing" })
	if e := hello("late"); e.str("reason") != "unavailable" || e.num("retry_after_ms") == 0 {
		t.Errorf("who comes meanwhile: %v", e)
	}

	platform.start()
	await(t, "a platform that is back", func() bool {
		_, ready := nodes[0].askAdmin(t, http.MethodGet, "/readyz", "")
		return strings.Contains(ready, `"status":"ok"`)
	})
	join(t, nodes[0].url, "demo", as("late"))
	await(t, "a verdict", func() bool { return ann.ask("danmaku", `,"text":"refuse `+rand.Text()+`"`).str("reason") == "rejected" })
}
