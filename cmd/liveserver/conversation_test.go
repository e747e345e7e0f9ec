package main

import (
	"strings"
	"testing"
)

// TestConversation is the whole way of each kind of message between a guest, a signed-in viewer and their room.
func TestConversation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	guest := join(t, s.url, "demo", "", `,"lang":"zh"`)
	ann := join(t, s.url, "demo", tokenFor(t, dir, "-sub", "ann", "-name", "Ann"))

	w := ann.welcome
	if w.str("id") != "h" || w.str("node") != "n1" || w.str("session") == "" || w.in("user").str("id") != "ann" || w.in("user").str("name") != "Ann" || w.in("user").str("role") != "viewer" {
		t.Errorf("welcome %v", w)
	}
	if w["guest_token"] != nil || guest.welcome.str("guest_token") == "" || !strings.HasPrefix(guest.welcome.in("user").str("id"), "guest-") {
		t.Errorf("who is a guest: %v %v", w, guest.welcome)
	}
	if w.in("room").num("online") != 2 || w.in("limits").in("danmaku")["burst"] != 3.0 || len(w["gifts"].([]any)) != 6 || w.num("gift_retry_ms") != 600000 || w.num("heartbeat_ms") != 25000 {
		t.Errorf("welcome %v", w)
	}

	ack := ann.ask("danmaku", `,"text":"  hello   there ","color":"#FF0000","mode":"top"`)
	if ack.num("code") != 200 || ack.str("mid") == "" || ack.num("ts") == 0 {
		t.Fatalf("ack %v", ack)
	}
	for who, c := range map[string]*client{"the guest": guest, "its sender": ann} {
		e := c.wait("danmaku", func(e event) bool { return e.kind() == "danmaku" })
		if e.str("mid") != ack.str("mid") || e.str("text") != "hello there" || e.str("color") != "#ff0000" || e.str("mode") != "top" || e.in("user").str("name") != "Ann" || e.num("ts") != ack.num("ts") {
			t.Errorf("%s sees %v after %v", who, e, ack)
		}
	}

	ack = ann.ask("gift", `,"gift":"rose","count":3`)
	if ack.num("code") != 200 || ack.num("seq") == 0 {
		t.Fatalf("ack %v", ack)
	}
	e := guest.wait("gift", func(e event) bool { return e.kind() == "gift" })
	if e.num("seq") != ack.num("seq") || e.num("prev") != 0 || e.str("mid") != ack.str("mid") || e.num("count") != 3 || e.num("combo") != 3 {
		t.Errorf("the guest sees %v after %v", e, ack)
	}
	if again := ann.ask("gift", `,"gift":"rose"`); again.num("seq") <= ack.num("seq") {
		t.Errorf("the second gift %v", again)
	}
	if e := guest.wait("gift", func(e event) bool { return e.kind() == "gift" }); e.num("prev") != ack.num("seq") || e.num("combo") != 4 {
		t.Errorf("the second gift %v", e)
	}

	if ack := guest.ask("like", `,"count":5`); ack.num("code") != 200 {
		t.Errorf("like %v", ack)
	}
	if e := ann.wait("like", func(e event) bool { return e.kind() == "like" }); e.num("delta") != 5 || e.num("total") != 5 {
		t.Errorf("likes %v", e)
	}
	if e := ann.ask("gift", `,"gift":"unicorn"`); e.num("code") != 404 || e.str("reason") != "not_found" {
		t.Errorf("a gift outside the catalogue: %v", e)
	}
	if e := guest.ask("moderate", `,"action":"kick","user":"ann"`); e.num("code") != 403 || !strings.Contains(e.str("msg"), "没有权限") {
		t.Errorf("a guest's kick: %v", e)
	}
	ann.send(`{"op":"ping","id":"p"}`)
	if e := ann.wait("pong", func(e event) bool { return e.kind() == "pong" }); e.str("id") != "p" || e.num("time") == 0 {
		t.Errorf("pong %v", e)
	}
	ann.send(`{"op":"danmaku"`)
	if e := ann.wait("error", func(e event) bool { return e.kind() == "error" }); e.num("code") != 400 || e.str("reason") != "bad_request" {
		t.Errorf("half a frame: %v", e)
	}
}

// TestJoiningShowsTheRecent: who comes later sees what was said, and a guest who comes again is the same guest.
func TestJoiningShowsTheRecent(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	first := join(t, s.url, "demo", "")
	ack := first.ask("danmaku", `,"text":"anybody here?"`)
	first.wait("danmaku", func(e event) bool { return e.kind() == "danmaku" })
	second := join(t, s.url, "demo", "")
	if e := second.wait("the recent danmaku", func(e event) bool { return e.kind() == "danmaku" }); e.str("mid") != ack.str("mid") {
		t.Errorf("got %v", e)
	}
	again := join(t, s.url, "demo", first.welcome.str("guest_token"))
	if again.welcome.in("user").str("id") != first.welcome.in("user").str("id") {
		t.Errorf("guest %v came back as %v", first.welcome["user"], again.welcome["user"])
	}
}

// TestSessionsOfOneUserShareItsBuckets: a second socket of the same user brings no second quota.
func TestSessionsOfOneUserShareItsBuckets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startWithRules(t, dir, slowly)
	tok := tokenFor(t, dir, "-sub", "ann")
	one, two := join(t, s.url, "demo", tok), join(t, s.url, "demo", tok)
	for i, c := range []*client{one, two, one} {
		if ack := c.ask("danmaku", `,"text":"number `+string(rune('a'+i))+`"`); ack.num("code") != 200 {
			t.Fatalf("within the burst: %v", ack)
		}
	}
	ack := two.ask("danmaku", `,"text":"one too many"`)
	if ack.num("code") != 429 || ack.str("scope") != "user_room" || ack.str("rule") != "danmaku-user-room" || ack.num("retry_after_ms") < 1 {
		t.Errorf("over the burst: %v", ack)
	}
}

// TestAttributesRideAlong: what a token says of its user is in the welcome and on what the user says and gives, and stays in the ledger.
func TestAttributesRideAlong(t *testing.T) {
	t.Parallel()
	dir, names := t.TempDir(), "level,badge"
	s := startServer(t, dir, "-protocol-attributes", names)
	ann := join(t, s.url, "demo", tokenFor(t, dir, "-protocol-attributes", names, "-sub", "ann", "-attrs", `{"level":12,"badge":"金"}`))
	bob := join(t, s.url, "demo", "")
	has := func(what string, user event) {
		t.Helper()
		if attrs := user.in("attrs"); attrs.num("level") != 12 || attrs.str("badge") != "金" {
			t.Errorf("%s: %v", what, user)
		}
	}
	has("welcome", ann.welcome.in("user"))
	if bob.welcome.in("user")["attrs"] != nil {
		t.Errorf("a guest has %v", bob.welcome)
	}
	ann.ask("danmaku", `,"text":"hello"`)
	has("danmaku", bob.wait("danmaku", func(e event) bool { return e.kind() == "danmaku" }).in("user"))
	ann.ask("gift", `,"gift":"rose"`)
	has("gift", bob.wait("gift", func(e event) bool { return e.kind() == "gift" }).in("user"))
	page := s.call(t, "GET", "/rooms/demo/gifts", s.adminToken, "")
	has("ledger", event(page.body["gifts"].([]any)[0].(map[string]any)).in("user"))
}
