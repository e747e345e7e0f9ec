package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestRetryAfterIsTrue: waiting as long as the answer says is enough; the room's own clock tells it.
func TestRetryAfterIsTrue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startWithRules(t, dir, "rules:\n  - {name: said, action: danmaku, scope: user, rate: 1, per: 2s, burst: 1}\n")
	c := join(t, s.url, "demo", tokenFor(t, dir, "-sub", "ann"))
	var ack event
	for i := 0; ack.num("code") != 429; i++ {
		if i > 10 {
			t.Fatal("never refused")
		}
		ack = c.ask("danmaku", fmt.Sprintf(`,"text":"number %d"`, i))
	}
	if ack.str("reason") != "rate_limited" || ack.str("rule") == "" || ack.str("msg") == "" {
		t.Errorf("refusal %v", ack)
	}
	wait := time.Duration(ack.num("retry_after_ms")) * time.Millisecond
	if wait <= 0 || wait > 3*time.Second {
		t.Fatalf("retry after %v", wait)
	}
	<-time.After(wait)
	if ack := c.ask("danmaku", `,"text":"after the wait"`); ack.num("code") != 200 {
		t.Errorf("after waiting %v: %v", wait, ack)
	}
}

// TestRepeatedIDGetsTheFirstAnswer: no bucket is asked for it, and another content under the same id is a conflict.
func TestRepeatedIDGetsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	c := join(t, s.url, "demo", "")
	first := c.askAs("x", "danmaku", `,"text":"once"`)
	for range 4 { // more than the burst
		if again := c.askAs("x", "danmaku", `,"text":"once"`); again.num("code") != 200 || again.str("mid") != first.str("mid") {
			t.Fatalf("again %v, first %v", again, first)
		}
	}
	if other := c.askAs("x", "danmaku", `,"text":"twice"`); other.num("code") != 409 || other.str("reason") != "conflict" {
		t.Errorf("another content: %v", other)
	}
	if same := c.askAs("y", "danmaku", `,"text":"once"`); same.num("code") != 429 || same.str("reason") != "repeated_text" || same.num("retry_after_ms") < 1 {
		t.Errorf("the same text under another id: %v", same)
	}
}

// TestFramesAreSpentBeforeTheyAreParsed: a flood of nonsense is refused by the connection's frame rule.
func TestFramesAreSpentBeforeTheyAreParsed(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	c := join(t, s.url, "demo", "")
	for range 60 {
		c.send(`{`)
	}
	e := c.wait("frame refusal", func(e event) bool { return e.num("code") == 429 })
	if e.str("rule") != "frame-connection" || e.str("scope") != "conn" || e.num("retry_after_ms") < 1 {
		t.Errorf("got %v", e)
	}
}

// TestAbuseIsCutOff: who goes on flooding is muted for a while, and cut off with a time to come back.
func TestAbuseIsCutOff(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	c := join(t, s.url, "demo", "")
	for range 200 {
		c.tell(`{"op":"ping","id":"p"}`)
	}
	c.wait("mute", func(e event) bool { return e.str("reason") == "muted" && e.num("retry_after_ms") > 1000 })
	if code, reason := c.closed(); code != 4005 || reason.num("reconnect_in_ms") < 1000 {
		t.Errorf("closed with %d %v", code, reason)
	}
}

// TestRulesFromTheFile: limits.file replaces the rules that ship.
func TestRulesFromTheFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte("version: 7\nrules:\n  - {name: one-word, action: danmaku, scope: user, rate: 1, per: 1h, burst: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, "", "-limits-file", file, "-limits-source", "file")
	c := join(t, s.url, "demo", "")
	c.ask("danmaku", `,"text":"one"`)
	if ack := c.ask("danmaku", `,"text":"two"`); ack.num("code") != 429 || ack.str("rule") != "one-word" || ack.num("retry_after_ms") < 3_500_000 {
		t.Errorf("got %v", ack)
	}
	if got := s.metric(t, "liveroom_rules_version"); got != 7 {
		t.Errorf("version %v", got)
	}
}

// TestHTTPRefusalsSayWhenToComeBack: the back end speaks for a user through the same gates, with HTTP's words.
func TestHTTPRefusalsSayWhenToComeBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	service := tokenFor(t, dir, "-role", "service")
	viewer := join(t, s.url, "demo", "")
	var res response
	for i := 0; res.status != 429; i++ {
		if i > 10 {
			t.Fatal("never refused")
		}
		res = s.call(t, http.MethodPost, "/rooms/demo/danmaku", service,
			fmt.Sprintf(`{"user":{"id":"bob","name":"Bob"},"id":"%d","text":"number %d"}`, i, i), "Accept-Language", "zh-CN")
		if i == 0 {
			if e := viewer.wait("danmaku", func(e event) bool { return e.kind() == "danmaku" }); e.str("mid") != res.body.str("mid") || e.in("user").str("name") != "Bob" {
				t.Errorf("the viewer sees %v after %v", e, res.body)
			}
		}
	}
	seconds, err := strconv.Atoi(res.header.Get("Retry-After"))
	if err != nil || seconds < 1 || int64(seconds)*1000 < res.body.num("retry_after_ms") {
		t.Errorf("Retry-After %q for %v", res.header.Get("Retry-After"), res.body)
	}
	if got := res.header.Get("RateLimit-Policy"); got != `"danmaku-user-room";q=3;w=3` {
		t.Errorf("RateLimit-Policy %s", got)
	}
	if got := res.header.Get("RateLimit"); got != `"danmaku-user-room";r=0;t=`+strconv.Itoa(seconds) {
		t.Errorf("RateLimit %s", got)
	}
	if res.body.str("msg") != "访问过于频繁，请稍后再试" || res.body.str("scope") != "user_room" || res.body.num("code") != 429 {
		t.Errorf("body %v", res.body)
	}
}
