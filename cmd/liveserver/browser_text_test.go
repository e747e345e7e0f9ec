package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// payloads are texts that run or load something where they reach an HTML sink.
var payloads = []string{
	`<script>pwned()</script>`, `<img src=/pwned onerror=pwned()>`, `<svg onload=pwned()>`, `<svg/onload=pwned()//`,
	`"><script>pwned()</script>`, `'><img src=/pwned onerror=pwned()>`, `<iframe src=/pwned></iframe>`, `<body onload=pwned()>`,
	`<a href=javascript:pwned()>x</a>`, `javascript:pwned()`, `<details open ontoggle=pwned()>`, `<video src=/pwned onerror=pwned()>`,
	`<audio src=/pwned onerror=pwned()>`, `<input autofocus onfocus=pwned()>`, `<style>@import'/pwned'</style>`, `<link rel=stylesheet href=/pwned>`,
	`<meta http-equiv=refresh content=0;/pwned>`, `<base href=/pwned/>`, `<object data=/pwned></object>`, `<embed src=/pwned>`,
	`{{constructor.constructor('pwned()')()}}`, "${pwned()}", `<math><mi xlink:href=/pwned>`, `<marquee onstart=pwned()>x`,
	`</textarea><script>pwned()</script>`, `</title><script>pwned()</script>`, `<!--><script>pwned()</script>`, `<template><img src=/pwned></template>`,
	`&lt;script&gt;pwned()&lt;/script&gt;`, `\u003cscript\u003epwned()\u003c/script\u003e`,
}

// TestNothingRuns is CASES 33: thirty payloads in text, nickname, gift name, gift icon and room title, looked at by a
// viewer, in the lobby, by the host and by the admin. Nothing runs and nothing loads.
func TestNothingRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	type gift struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Price int    `json:"price"`
		Icon  string `json:"icon"`
	}
	var gifts []gift
	for i, p := range payloads {
		if len(p) <= 32 {
			gifts = append(gifts, gift{fmt.Sprintf("g%d", i), p, 1, p})
		}
	}
	catalogue, err := json.Marshal(gifts)
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, dir, "-gifts", string(catalogue))
	service := tokenFor(t, dir, "-role", "service")
	body := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	b := startBrowser(t)
	viewer := b.enter(s, tokenFor(t, dir, "-sub", "ann"))
	for i, p := range payloads {
		who := map[string]string{"id": fmt.Sprintf("u%d", i), "name": p}
		res := s.call(t, http.MethodPost, "/rooms/demo/danmaku", service, body(map[string]any{"user": who, "id": "d", "text": p}))
		if res.status != 200 {
			t.Errorf("%q: %v", p, res.body)
		}
		if i < len(gifts) {
			s.call(t, http.MethodPost, "/rooms/demo/gifts", service, body(map[string]any{"user": who, "id": "g", "gift": gifts[i].ID}))
		}
		if res := s.call(t, http.MethodPut, fmt.Sprintf("/rooms/r%d", i), s.adminToken, body(map[string]any{"title": p})); res.status != 200 {
			t.Errorf("title %q: %v", p, res.body)
		}
	}
	if res := s.call(t, http.MethodPut, "/rooms/demo", s.adminToken, body(map[string]any{"title": payloads[1]})); res.status != 200 {
		t.Errorf("title: %v", res.body)
	}
	s.call(t, http.MethodPost, "/rooms/demo/moderate", s.adminToken, body(map[string]any{"action": "announce", "text": payloads[1]}))
	last := payloads[len(payloads)-1]
	viewer.until("the last payload as plain text", fmt.Sprintf(`[...document.querySelectorAll("#chat li .text")].some((l) => l.textContent === %q)`, last))
	viewer.until("the title as plain text", fmt.Sprintf(`document.getElementById("title").textContent === %q`, payloads[1]))
	lobby := b.open(s.url + "/")
	lobby.until("rooms", `document.querySelectorAll("#rooms li").length > 0`)
	host := b.open(s.url + "/host/demo#token=" + s.hostToken)
	host.until("the room's title", fmt.Sprintf(`document.getElementById("title").textContent === %q`, payloads[1]))
	admin := b.open(s.admin + "/#token=" + s.adminToken)
	admin.until("rooms", `document.querySelectorAll("#rooms tbody tr").length > 0`)

	for name, p := range map[string]*tab{"viewer": viewer, "lobby": lobby, "host": host, "admin": admin} {
		if n := eval[int](p, `performance.getEntriesByType("resource").filter((e) => e.name.includes("pwned")).length`); n != 0 {
			t.Errorf("the %s's page loaded %d things", name, n)
		}
		if n := eval[int](p, `document.querySelectorAll('[src*="pwned"], [href*="pwned"], [data*="pwned"], iframe, object, embed, base').length`); n != 0 {
			t.Errorf("the %s's page has %d elements of a payload", name, n)
		}
		if href := eval[string](p, `location.pathname`); strings.Contains(href, "pwned") {
			t.Errorf("the %s's page went to %s", name, href)
		}
		if eval[bool](p, `window.ran`) {
			t.Errorf("the %s's page ran a payload", name)
		}
		// The policy itself: an inline script and an HTML sink are refused.
		p.do("try to run", chromedp.Evaluate[chromedp.Void](`(() => {
			const s = document.createElement("script");
			s.setAttribute("id", "inline");
			try { s.textContent = "window.ran = true"; document.body.append(s); } catch { /* Trusted Types */ }
			try { document.body.insertAdjacentHTML("beforeend", "<img src=/pwned onerror='window.ran = true'>"); } catch { /* Trusted Types */ }
		})()`))
		if eval[bool](p, `window.ran === true`) {
			t.Errorf("the %s's page ran an inline script", name)
		}
	}
	if res := s.call(t, http.MethodGet, "/rooms/demo", s.hostToken, ""); res.body.str("title") != payloads[1] {
		t.Errorf("what is stored is not the plain text: %q", res.body.str("title"))
	}
}

// TestFlood is CASES 36, shorter: under 50 danmaku a second the newest is visible, the page goes on drawing, the list
// stays bounded, and a reader who scrolled up is left alone and told of new messages.
func TestFlood(t *testing.T) {
	t.Parallel()
	const perSecond, seconds = 50, 6
	dir := t.TempDir()
	s := startServer(t, dir)
	service := tokenFor(t, dir, "-role", "service")
	b := startBrowser(t)
	b.moving = true
	p := b.enter(s, tokenFor(t, dir, "-sub", "ann"))
	p.do("count frames", chromedp.Evaluate[chromedp.Void](`window.drawn = 0; (function f() { window.drawn++; requestAnimationFrame(f); })()`))
	said := 0
	flood := func(n int) {
		t.Helper()
		tick := time.NewTicker(time.Second / perSecond)
		defer tick.Stop()
		for range n {
			<-tick.C
			said++
			res := s.call(t, http.MethodPost, "/rooms/demo/danmaku", service, fmt.Sprintf(`{"user":{"id":"u%d"},"id":"f%d","text":"flood %d."}`, said, said, said))
			if res.status != 200 {
				t.Fatalf("flood: %v", res.body)
			}
		}
	}
	flood(perSecond * seconds)
	p.until("the newest", saying(fmt.Sprintf("flood %d.", said))+" === 1")
	atEnd := `(() => { const c = document.getElementById("chat"); return c.scrollHeight - c.scrollTop - c.clientHeight; })()`
	p.until("the newest is in view", atEnd+" < 4")
	if drawn := eval[int](p, `window.drawn`); drawn < 2*seconds { // hundreds, were the machine idle
		t.Errorf("%d frames for %d danmaku", drawn, said)
	}
	if n := eval[int](p, `document.querySelectorAll("#chat li").length`); n > 250 { // 200 of the room, and a few notices
		t.Errorf("the list holds %d lines", n)
	}
	p.do("scroll up", chromedp.Evaluate[chromedp.Void](`document.getElementById("chat").scrollTop = 0`))
	p.until("the list is at its top", `document.getElementById("chat").scrollTop < 40`)
	flood(perSecond)
	p.until("the pill", `!document.getElementById("pill").hidden`)
	if gap := eval[float64](p, atEnd); gap < 100 {
		t.Errorf("the reader was taken along: %.0f px from the end", gap)
	}
	p.do("follow again", chromedp.Click("#pill"))
	p.until("back at the end", atEnd+" < 4")
}
