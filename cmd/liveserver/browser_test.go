package main

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browserPatience bounds each wait for a page; a browser on a busy machine is slow: its start has taken 39 s.
const browserPatience = 90 * time.Second

// chromium is the one headless Chromium of all tests here, which the first that opens a page starts and TestMain ends.
var chromium struct {
	sync.Once
	ctx  context.Context
	stop func()
	err  error
}

func startChromium() {
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.NoSandbox, chromedp.WindowSize(1280, 800),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("lang", "en-US"), chromedp.Flag("disable-gpu", true),
		chromedp.WSURLReadTimeout(browserPatience),
	)
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, stop := chromedp.NewContext(alloc)
	chromium.ctx, chromium.err = ctx, chromedp.Do(ctx)
	chromium.stop = func() {
		_ = chromedp.Cancel(ctx) // waits for the process
		stop()
		stopAlloc()
	}
}

// browser opens pages for a test.
type browser struct {
	t      *testing.T
	ctx    context.Context
	before string // a script that each page runs before its own
	moving bool   // its user has nothing against motion; a stage drawn in software takes half a processor a page
}

func startBrowser(t *testing.T) *browser {
	t.Helper()
	found := false
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		_, err := exec.LookPath(name)
		found = found || err == nil
	}
	if !found {
		t.Fatal("no Chromium: install it with: sudo apt-get install chromium")
	}
	if chromium.Do(startChromium); chromium.err != nil {
		t.Fatalf("start Chromium: %v", chromium.err)
	}
	return &browser{t: t, ctx: chromium.ctx}
}

// tab is one page of somebody with a store of their own, as in another browser.
type tab struct {
	t      *testing.T
	ctx    context.Context
	errors *pageErrors
}

// pageErrors are the exceptions that nothing of a page caught.
type pageErrors struct {
	mu   sync.Mutex
	said []string
}

func (e *pageErrors) hear(ev any) {
	thrown, ok := ev.(*runtime.EventExceptionThrown)
	if !ok {
		return
	}
	d := thrown.ExceptionDetails
	what := fmt.Sprintf("%s:%d: %s", d.URL, d.LineNumber+1, d.Text)
	if d.Exception != nil {
		what += " " + d.Exception.Description
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.said = append(e.said, what)
}

// forgive forgets what was heard: the test meant it.
func (e *pageErrors) forgive() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.said = nil
}

// sound fails the test when the page had an error.
func (p *tab) sound() {
	p.t.Helper()
	p.errors.mu.Lock()
	defer p.errors.mu.Unlock()
	for _, what := range p.errors.said {
		p.t.Errorf("the page threw: %s", what)
	}
	p.errors.said = nil
}

// watchRuns makes whatever calls pwned() seen as window.ran, before any script of the page.
const watchRuns = `window.ran = false; window.pwned = () => { window.ran = true; };`

// open opens a page.
func (b *browser) open(url string) *tab {
	b.t.Helper()
	errors := &pageErrors{}
	ctx, stop := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(errors.hear))
	p := &tab{t: b.t, ctx: ctx, errors: errors}
	b.t.Cleanup(func() {
		p.sound()
		stop()
	})
	err := chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error { // the first call takes no timeout
		_, err := cdp.Call(ctx, t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		if err == nil && !b.moving {
			_, err = cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}}})
		}
		if err == nil {
			_, err = cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watchRuns + b.before})
		}
		return err
	}))
	if err != nil {
		b.t.Fatalf("open a tab: %v", err)
	}
	p.do("open "+url, chromedp.Navigate(url))
	return p
}

func (p *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, browserPatience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// until polls a JavaScript expression until it is true, ever less often.
func (p *tab) until(what, expression string) {
	p.t.Helper()
	for end, pause := time.Now().Add(browserPatience), 10*time.Millisecond; !eval[bool](p, expression); pause = min(pause*3/2, 150*time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("not %s: %s\nthe page says: %.2000s", what, expression, eval[string](p, `document.body.innerText`))
		}
		<-time.After(pause)
	}
}

// eval returns an expression's value.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, browserPatience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// enter opens a room's page and waits until it is live.
func (b *browser) enter(s *server, token string) *tab {
	b.t.Helper()
	p := b.open(s.url + "/room/demo#token=" + token)
	p.until("live", `document.getElementById("state")?.dataset.phase === "live"`)
	return p
}

// say types a text and presses Enter.
func (p *tab) say(text string) {
	p.t.Helper()
	p.do("say "+text, chromedp.SendKeys("#message", text+"\r"))
}

// sayAtOnce says several things before anything else can happen in the page.
func (p *tab) sayAtOnce(texts ...string) {
	p.t.Helper()
	p.do("say all at once", chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => {
		const box = document.getElementById("message");
		for (const text of %q.split("|")) {
			box.value = text;
			box.dispatchEvent(new Event("input"));
			document.getElementById("composer").requestSubmit();
		}
	})()`, strings.Join(texts, "|"))))
}

// saying counts the lines of the chat that contain a text.
func saying(text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("#chat li")].filter((l) => l.textContent.includes(%q)).length`, text)
}

// passing has a page remember what it shows for a moment only: a busy machine may look too late.
const passing = `window.passed = new Set(); new MutationObserver(() => {
	for (const e of document.querySelectorAll("#danmaku .fly, #banners li, #hint, #seconds")) passed.add(e.closest("[id]").id + ": " + e.textContent);
	if (document.querySelector("#send[data-cooling]")) passed.add("cooling: ");
}).observe(document, { childList: true, subtree: true, attributes: true, characterData: true });`

// passed tells whether a page has shown a text at an element of that id.
func passed(id, pattern string) string {
	return fmt.Sprintf(`[...passed].some((p) => /^%s: .*%s/.test(p))`, id, pattern)
}

// TestTwoViewers is the whole product in a real browser: two viewers see each other's danmaku, a gift combo and likes;
// one is limited and sees why and for how long; the server is restarted under them and they come back, with every
// message once (CASES 35).
func TestTwoViewers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	b := startBrowser(t)
	b.before, b.moving = passing, true
	ann := b.enter(s, tokenFor(t, dir, "-sub", "ann", "-name", "Ann"))
	bob := b.enter(s, tokenFor(t, dir, "-sub", "bob", "-name", "Bob"))
	ann.until("two online", `document.querySelector("#online b").textContent === "2"`)

	ann.say("hello from ann")
	bob.until("Ann's danmaku over the stage", passed("danmaku", "hello from ann"))
	bob.until("Ann's line", saying("hello from ann")+" === 1")
	bob.say("hello from bob")
	ann.until("Bob's line", saying("hello from bob")+" === 1")
	ann.until("her own line, sent", `document.querySelectorAll('#chat li.own[data-status="sent"]').length === 1`)

	for range 2 {
		ann.do("give", chromedp.Click("#gifts .present"))
	}
	bob.until("a combo of two", `[...document.querySelectorAll("#chat li.given")].some((l) => l.textContent.includes("Ann") && l.textContent.includes("2"))`)
	bob.until("its banner", passed("banners", ""))

	if res := s.call(t, http.MethodPut, "/gifts", s.adminToken, `{"gifts":[{"id":"kite","name":"Kite","price":7}]}`, "If-Match", `"v1"`); res.status != 200 {
		t.Fatal(res.body)
	}
	bob.until("another catalogue", `document.querySelectorAll("#gifts .present").length === 1 && document.querySelector("#gifts .name").textContent === "Kite"`)
	bob.until("what was given is still told by its name", `[...document.querySelectorAll("#chat li.given")].some((l) => !l.textContent.includes("rose"))`)

	ann.do("like", chromedp.Click("#like"))
	bob.until("the like", `document.querySelector("#likes b").textContent === "1"`)

	ann.sayAtOnce("quick 0", "quick 1", "quick 2", "quick 3", "quick 4")
	ann.until("the ring runs", passed("cooling", ""))
	ann.until("seconds are counted down", passed("seconds", "[1-9]"))
	ann.until("and it says why", passed("hint", "danmaku-user-room"))
	ann.until("until it is over", `!document.getElementById("send").hasAttribute("data-cooling")`)

	before := eval[int](ann, `[...document.querySelectorAll('#chat li.own[data-status="sent"]')].filter((l) => l.textContent.includes("quick")).length`)
	bob.until("all of them that were admitted", fmt.Sprintf("%s === %d", saying("quick"), before))
	address := strings.TrimPrefix(s.url, "http://")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	ann.until("noticed", `document.getElementById("state").dataset.phase !== "live"`)
	startServer(t, dir, "-addr", address)
	for _, p := range []*tab{ann, bob} {
		p.until("back", `document.getElementById("state").dataset.phase === "live"`)
	}
	ann.say("still here")
	bob.until("Ann after the restart", saying("still here")+" === 1")
	if n := eval[int](bob, saying("hello from ann")); n != 1 {
		t.Errorf("Bob has Ann's first message %d times", n)
	}
	if n := eval[int](bob, saying("quick")); n != before {
		t.Errorf("Bob had %d of Ann's quick ones and has %d", before, n)
	}
	bob.until("the like is kept", `document.querySelector("#likes b").textContent === "1"`)
}
