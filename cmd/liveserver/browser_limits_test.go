package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// fill types a value into a field as a person does.
func (p *tab) fill(selector, value string) {
	p.t.Helper()
	p.do("fill "+selector, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => {
		const field = document.querySelector(%q);
		field.focus();
		field.value = %q;
		field.dispatchEvent(new Event("input", { bubbles: true }));
	})()`, selector, value)))
}

// click clicks an element by its own method, which needs no place on the screen.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.until("there and usable: "+selector, fmt.Sprintf(`document.querySelector(%q)?.matches(":not(:disabled)") ?? false`, selector))
	p.do("click "+selector, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector(%q).click()`, selector)))
}

// shows waits until an element is seen and its text contains a part.
func (p *tab) shows(selector, part string) {
	p.t.Helper()
	p.until(selector+" shows "+part, fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		return e !== null && e.checkVisibility() && e.textContent.includes(%q);
	})()`, selector, part))
}

// operate opens the admin page's limits.
func (b *browser) operate(s *server) *tab {
	b.t.Helper()
	p := b.open(s.admin + "/#token=" + s.adminToken)
	p.click(`#tabs a[href="#limits"]`)
	p.shows("#change-title", "Version 1 is in force")
	return p
}

// mark gives the row of a rule an id.
func (p *tab) mark(rule, id string) {
	p.t.Helper()
	p.do("find "+rule, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`
		[...document.querySelectorAll("tr.rule")].find((r) => r.querySelector(".open").textContent === %q).id = %q`, rule, id)))
}

// TestLimitsDesk is an operator at work in a real browser: faults appear at their fields, the preview warns, publishing
// asks for the figure it warns of, a viewer feels the new rule, and the history brings the old one back.
func TestLimitsDesk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	b := startBrowser(t)
	bob := b.enter(s, tokenFor(t, dir, "-sub", "bob", "-name", "Bob"))
	for _, text := range []string{"first of three", "second of three", "third of three"} {
		bob.say(text)
		bob.until("sent", fmt.Sprintf(`[...document.querySelectorAll('#chat li.own[data-status="sent"]')].some((l) => l.textContent.includes(%q))`, text))
	}

	op := b.operate(s)
	op.mark("danmaku-user-room", "seat")
	op.fill("#seat .burst input", "0")
	op.until("a fault at its field", `document.querySelector("#seat .burst input").ariaInvalid === "true" && document.querySelector("#seat .fault").textContent.includes("whole number")`)
	op.until("nothing to publish", `document.getElementById("publish").disabled`)
	// What only the server can tell: these numbers have no exact form.
	op.fill("#seat .burst input", "999999999999")
	op.fill(`#seat input[data-path="rate"]`, "999999999")
	op.fill(`#seat input[data-path="per"]`, "8783h59m59s")
	op.until("the server's fault at its field", `document.querySelector("#seat .burst input").ariaInvalid === "true" && document.querySelector("#seat .fault").textContent.includes("64 bits")`)

	op.fill("#seat .burst input", "1")
	op.fill(`#seat input[data-path="rate"]`, "1")
	op.fill(`#seat input[data-path="per"]`, "5s")
	op.shows("#changes", "danmaku-user-room")
	op.shows("#preview[data-state=report] .note", "Publishing asks for a confirmation")
	op.shows("#preview[data-state=report]", "danmaku-user-room")
	op.fill("#note", "half a minute of calm")
	op.click("#publish")
	op.shows("#confirm[open] .reason", "It would have refused")
	if !eval[bool](op, `document.getElementById("confirm-go").disabled`) {
		t.Error("it can be published without reading")
	}
	op.fill("#confirm-input", eval[string](op, `/\d+/.exec(document.getElementById("confirm-label").textContent)[0]`))
	op.click("#confirm-go")
	op.shows("#change-title", "Version 2 is in force")
	op.shows("#guard", "guard watches version 2")

	bob.sayAtOnce("the one that is left", "one too many") // within what gives one back
	bob.until("refused by the new rule", `document.getElementById("hint").textContent.includes("danmaku-user-room")`)

	op.click(`#tabs a[href="#history"]`)
	op.shows("#versions li:nth-child(1)", "half a minute of calm")
	op.shows("#versions li:nth-child(1)", "overridden")
	op.click("#versions li:nth-child(2) summary")
	op.do("go to the button", chromedp.Evaluate[chromedp.Void](`document.querySelector("#versions li:nth-child(2) .foot button").focus()`))
	op.click("#versions li:nth-child(2) .foot button")
	op.until("a dialog with the focus in it", `document.activeElement?.closest("#confirm:modal") != null`)
	op.do("Escape", chromedp.KeyEvent(kb.Escape))
	op.until("closed, and the focus where it was", `!document.querySelector("#confirm[open]") && document.activeElement === document.querySelector("#versions li:nth-child(2) .foot button")`)
	op.click("#versions li:nth-child(2) .foot button")
	op.shows("#confirm[open]", "Go back to version 1?")
	op.click("#confirm-go")
	op.shows("#history-said", "Version 3 is in force, with the rules of version 1")
	op.shows("#versions li:nth-child(1)", "Went back to 1")

	bob.until("he may speak again", `!document.getElementById("send").hasAttribute("data-cooling")`)
	bob.say("admitted again")
	bob.until("admitted", `[...document.querySelectorAll('#chat li.own[data-status="sent"]')].some((l) => l.textContent.includes("admitted again"))`)
	op.wordsAndGifts(bob)
}

// wordsAndGifts has the operator keep the platform's words and its gifts: faults are told where they are, a preview comes before, a viewer feels
// it, and one click undoes it.
func (p *tab) wordsAndGifts(viewer *tab) {
	p.t.Helper()
	p.click(`#tabs a[href="#words"]`)
	p.shows("#words-change-title", "Version 1 is in force")
	p.fill("#words-new", "a.*b")
	p.click("#words-add button")
	p.shows("#words-add-said", "regular expression")
	p.click("#words-many")
	p.fill("#words-text", "T-h-r-e-e, refuse\nthree\n.*?\nzzz")
	p.click("#words-paste button")
	p.shows("#words-add-said", "3 words added. “.*?”")
	p.shows(`#words tr[aria-invalid] .fault`, "which is the same word")
	p.click("#words tr[aria-invalid] button")
	p.shows("#words-preview[data-state=report]", "3 of ")
	p.shows("#words-preview .caught", "third of three")
	p.fill("#words-try", "One.T.H.R.E.E.")
	p.shows("#words-tried", "T.H.R.E.E → T-h-r-e-e (Refuse)")
	p.click("#words-publish")
	p.shows("#words-change-title", "Version 2 is in force")
	viewer.say("not one of three")
	viewer.until("refused", `document.querySelectorAll('#chat li.own[data-status="failed"]').length > 0 && document.querySelector("#chat").textContent.includes("not one of three")`)
	p.click("#words-said button")
	p.shows("#words-versions li:nth-child(1)", "Went back to 1")
	p.shows("#words-count", "0 words")

	p.click(`#tabs a[href="#gifts"]`)
	p.shows("#gifts-change-title", "Version 1 is in force")
	p.fill("#gifts .ware:nth-child(2) [data-path=price]", "0")
	p.shows("#gifts .ware:nth-child(2) .fault", "whole number")
	p.fill("#gifts .ware:nth-child(2) [data-path=price]", "7")
	p.click("#gifts .ware:nth-child(1) .ware-buttons .tool:last-child")
	p.shows("#gifts-changes", "removed")
	p.click("#gifts-publish")
	p.shows("#gifts-change-title", "Version 2 is in force")
	viewer.until("the tray has it", `document.querySelectorAll("#gifts .present").length === 5 && document.querySelector("#gifts .present").textContent.includes("7")`)
	p.click("#gifts-said button")
	p.shows("#gifts-change-title", "Version 3 is in force")
	viewer.until("and has it back", `document.querySelectorAll("#gifts .present").length === 6`)
}

// TestLimitsDeskMeanwhile: a draft survives what another operator publishes, and goes on top of it.
func TestLimitsDeskMeanwhile(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	op := startBrowser(t).operate(s)
	op.mark("gift-user", "mine")
	op.fill("#mine .burst input", "33")
	op.shows("#change-title", "1 rule changed")
	body, tag := s.rulesWith(t, "gift-connection", 4, 16)
	if put := s.call(t, http.MethodPut, "/limits/rules?note=by+another", s.adminToken, body, "If-Match", tag); put.status != http.StatusOK {
		t.Fatalf("put: %v", put)
	}
	op.click("#publish")
	op.shows("#theirs", "Version 2 was published meanwhile")
	op.shows("#theirs", "by another")
	op.click("#theirs-take")
	op.shows("#said", "Your change now stands on version 2")
	op.click("#publish")
	op.shows("#change-title", "Version 3 is in force")
	now := s.call(t, http.MethodGet, "/limits/rules", s.adminToken, "")
	for _, r := range now.body["rules"].([]any) {
		r := event(r.(map[string]any))
		if want := map[string]int64{"gift-user": 33, "gift-connection": 16}[r.str("name")]; want != 0 && r.num("burst") != want {
			t.Errorf("%s has burst %d, want %d", r.str("name"), r.num("burst"), want)
		}
	}

	op.click(`#tabs a[href="#explain"]`)
	op.fill("#why-user", "bob")
	op.fill("#why-room", "demo")
	op.click("#why button")
	op.shows("#why-verdict", "It would pass now")
	op.shows("#standings", "danmaku-room")
	op.click("#why-reset")
	op.shows("#why-said", "are full on this node")
}

// holdPreviews makes a page's previews wait until the test says how they end.
const holdPreviews = `{
	const real = window.fetch;
	let end;
	const ended = new Promise((resolve) => { end = resolve; });
	window.endPreviews = end;
	window.fetch = async (path, options) => {
		if (!String(path).endsWith("/preview")) return real(path, options);
		return await ended === "fail" ? new Response("{}", { status: 503, headers: { "Content-Type": "application/json" } }) : real(path, options);
	};
}`

// TestPublishWaitsForThePreview, or says that there is none; the history's head names what is in force.
func TestPublishWaitsForThePreview(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	b := startBrowser(t)
	b.before = holdPreviews
	op := b.operate(s)
	op.mark("gift-user", "mine")
	op.fill("#mine .burst input", "33")
	op.shows("#publish", "Waiting for the preview")
	if !eval[bool](op, `document.getElementById("publish").disabled`) {
		t.Error("it can be published while its preview is on the way")
	}
	op.do("let it fail", chromedp.Evaluate[chromedp.Void](`endPreviews("fail")`))
	op.shows("#publish", "Publish without a preview")
	op.shows("#unseen", "There is no preview")
	op.click("#publish")
	op.shows("#change-title", "Version 2 is in force")
	op.click(`#tabs a[href="#history"]`)
	op.shows("#history-name", "Version 2 is in force")

	body, tag := s.rulesWith(t, "gift-connection", 4, 16)
	if put := s.call(t, http.MethodPut, "/limits/rules?note=by+another", s.adminToken, body, "If-Match", tag); put.status != http.StatusOK {
		t.Fatalf("put: %v", put)
	}
	op.shows("#history-name", "Version 3 is in force")
	op.shows("#history-by", "by another")
}

// TestOverviewBeginsFilled: who opens the page sees what came before, with a time axis and one scale, and who was refused
// most. On a phone nothing of it scrolls sideways.
func TestOverviewBeginsFilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	loud := join(t, s.url, "demo", tokenFor(t, dir, "-sub", "loud"))
	for i := range 9 {
		loud.ask("danmaku", fmt.Sprintf(`,"text":"number %d"`, i))
	}
	await(t, "a step with refusals", func() bool {
		return strings.Contains(fmt.Sprint(s.call(t, http.MethodGet, "/limits/traffic", s.adminToken, "").body["series"]), "reject")
	})
	op := startBrowser(t).open(s.admin + "/#token=" + s.adminToken)
	op.until("refusals drawn", `document.querySelector("#chart path.reject").getAttribute("d")?.length > 10`)
	op.until("a time axis", `document.querySelectorAll("#chart .times span").length >= 2 && /^\d\d:\d\d/.test(document.querySelector("#chart .times span").textContent)`)
	op.shows("#top", "loud")
	op.shows("#top", "danmaku-user-room")
	op.click("#top .open")
	op.until("it is asked about", `document.getElementById("why-user").value === "loud" && document.getElementById("why-verdict").textContent !== ""`)
	op.do("a phone", chromedp.EmulateViewport(390, 844))
	for tab := range eval[int](op, `document.querySelectorAll("#tabs a").length`) {
		op.do("go on", chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelectorAll("#tabs a")[%d].click()`, tab)))
		op.until("the tab is in view", fmt.Sprintf(`(() => { const box = document.querySelectorAll("#tabs a")[%d].getBoundingClientRect(); return box.left >= 0 && box.right <= innerWidth && box.height > 30; })()`, tab))
		if wide := eval[string](op, `[document.documentElement, ...document.querySelectorAll(".wide, .bar, .tabs")].filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.className + (e.firstElementChild?.id ?? "") + e.scrollWidth).join(" ")`); wide != "" {
			t.Errorf("tab %d scrolls sideways: %s", tab, wide)
		}
	}
}

// TestPhoneOnItsSide: stage, talk and send box are all in view and none lies on another.
func TestPhoneOnItsSide(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	p := startBrowser(t).enter(s, "")
	p.do("turn", chromedp.EmulateViewport(844, 390))
	p.until("all in view, side by side", `(() => {
		const [stage, chat, box] = ["stage", "chat", "message"].map((id) => document.getElementById(id).getBoundingClientRect());
		const inView = (b) => b.top >= 0 && b.left >= 0 && b.bottom <= innerHeight && b.right <= innerWidth;
		return [stage, chat, box].every(inView) && stage.height > 200 && chat.height > 150 && chat.left >= stage.right && box.top >= chat.bottom;
	})()`)
	// The chosen count stands out in the dark: 4.5:1 against its own ground, 3:1 against what surrounds it.
	p.do("at night", chromedp.EmulateViewport(1280, 800))
	for _, theme := range []string{"dark", "light"} {
		if ratio := eval[float64](p, fmt.Sprintf(`(() => {
			document.documentElement.dataset.theme = %q;
			const light = (css) => {
				const [r, g, b] = css.match(/[\d.]+/g).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
				return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
			};
			const of = (a, b) => Math.max(light(a), light(b)) / Math.min(light(a), light(b));
			const chosen = getComputedStyle(document.querySelector("#many input:checked + span"));
			const around = getComputedStyle(document.getElementById("many"));
			return Math.min(of(chosen.color, chosen.backgroundColor) / 4.5, of(chosen.backgroundColor, around.backgroundColor) / 3);
		})()`, theme)); ratio < 1 {
			t.Errorf("%s: the chosen count has %.2f of the contrast it needs", theme, ratio)
		}
	}
}
