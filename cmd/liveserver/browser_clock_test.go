package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// TestAViewersClockDecidesNothing: danmaku fly on the page of a viewer whose clock is a minute fast, an hour slow, or
// right, and what was said before fly on none.
func TestAViewersClockDecidesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	b := startBrowser(t)
	service := tokenFor(t, dir, "-role", "service")
	say := func(who, text string) {
		t.Helper()
		res := s.call(t, "POST", "/rooms/demo/danmaku", service, fmt.Sprintf(`{"user":{"id":%q},"id":"1","text":%q}`, who, text))
		if res.status != 200 {
			t.Fatalf("%s: %d %v", text, res.status, res.body)
		}
	}
	say("before", "said before")
	pages := map[string]*tab{}
	for name, off := range map[string]time.Duration{"right": 0, "fast": time.Minute, "slow": -time.Hour} {
		p := b.open("about:blank")
		shift := fmt.Sprintf(`{ const now = Date.now; Date.now = () => now() + (%d); window.flown = new Set();
			if (location.host) localStorage.setItem("liveroom.density", "1");
			new MutationObserver(() => { for (const f of document.querySelectorAll("#danmaku .fly")) flown.add(f.textContent); })
				.observe(document, {childList: true, subtree: true}); }`, off.Milliseconds())
		p.do("shift the clock", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: shift})
			return err
		}), chromedp.Navigate(s.url+"/room/demo#token="+tokenFor(t, dir, "-sub", name)))
		p.until("live", `document.getElementById("state")?.dataset.phase === "live"`)
		p.until("what was said before", saying("said before")+" === 1")
		pages[name] = p
	}
	for i := range 8 {
		text := fmt.Sprintf("live %d.", i)
		say(fmt.Sprintf("u%d", i), text)
		for name, p := range pages {
			p.until(text+" flying over the page whose clock is "+name, fmt.Sprintf(`[...flown].some((text) => text.includes(%q))`, text))
		}
	}
	for name, p := range pages {
		if eval[bool](p, `[...flown].some((text) => text.includes("said before"))`) {
			t.Errorf("%s: what was said before flies", name)
		}
	}
}
