package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestChromiumInflates: Chromium negotiates permessage-deflate, says a hello that it deflates, and reads every danmaku of
// the room's deflated frames.
func TestChromiumInflates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir, "-compression", "on")
	p := startBrowser(t).open(s.url)
	hello := fmt.Sprintf(`{"op":"hello","id":"h","room":"demo","token":%q}`, tokenFor(t, dir, "-sub", "ann", "-name", strings.Repeat("Ann", 10)))
	eval[bool](p, fmt.Sprintf(`(() => {
		window.texts = [];
		window.socket = new WebSocket(location.origin.replace("http", "ws") + "/ws", "liveroom.v1");
		socket.onopen = () => socket.send(%q);
		socket.onmessage = (m) => {
			for (const e of JSON.parse(m.data)) {
				if (e.ev === "welcome") window.welcomed = true;
				if (e.ev === "danmaku") texts.push(e.text);
			}
		};
		return true;
	})()`, hello))
	p.until("welcomed", `window.welcomed === true`)
	if got := eval[string](p, `socket.extensions`); !strings.HasPrefix(got, "permessage-deflate") {
		t.Fatalf("negotiated: %q", got)
	}
	if got := s.metric(t, "liveroom_deflate_sessions"); got != 1 {
		t.Errorf("%v sessions deflate", got)
	}
	const danmaku = 40
	for i := range danmaku {
		body := fmt.Sprintf(`{"user":{"id":"u%d","name":"观众 %d"},"id":"c","text":"第 %d 条弹幕 🎉"}`, i, i, i)
		if res := s.call(t, http.MethodPost, "/rooms/demo/danmaku", s.adminToken, body); res.status != 200 {
			t.Fatalf("danmaku %d: %v", i, res)
		}
	}
	p.until("all there", fmt.Sprintf(`texts.length === %d && texts.every((text, i) => text === "第 " + i + " 条弹幕 🎉")`, danmaku))
	in, out := s.metric(t, `liveroom_deflate_bytes_total{form="in"}`), s.metric(t, `liveroom_deflate_bytes_total{form="out"}`)
	if out <= 0 || out >= in {
		t.Errorf("%v bytes became %v", in, out)
	}
}
