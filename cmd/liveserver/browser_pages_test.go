package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// pages opens each page as the one it is for, and waits until it shows what the server says.
func (b *browser) pages(s *server, viewer string) map[string]*tab {
	b.t.Helper()
	room := b.enter(s, viewer)
	lobby := b.open(s.url + "/")
	host := b.open(s.url + "/host/demo#token=" + s.hostToken)
	admin := b.open(s.admin + "/#token=" + s.adminToken)
	lobby.until("a room", `document.querySelectorAll("#rooms li").length > 0`)
	host.until("the desk", `document.getElementById("title").textContent !== ""`)
	summary := b.open(s.url + "/host/demo/summary#token=" + s.hostToken)
	summary.until("the show", `document.getElementById("title").textContent !== ""`)
	admin.until("rooms", `document.querySelectorAll("#rooms tbody tr").length > 0`)
	admin.until("rules", `document.querySelectorAll("#rules tbody tr.rule").length > 5`)
	return map[string]*tab{"lobby": lobby, "room": room, "host": host, "summary": summary, "admin": admin}
}

// clickAll clicks every button and summary of a page once, also those that the clicks bring, and says no to what asks
// back, which may come late on a busy machine. It returns how many there were. A link away from the page is none.
const clickAll = `(async () => {
	const done = new Set();
	const name = (e) => e.id || e.className + "/" + e.textContent;
	for (let more = true, round = 0; more && round < 8; round++) {
		more = false;
		for (const e of document.querySelectorAll("button, summary, input[type=radio]")) {
			if (done.has(name(e)) || e.disabled || e.id === "confirm-go" || !(e.type === "radio" ? e.parentElement : e).checkVisibility()) continue;
			done.add(name(e));
			more = true;
			e.click();
			await new Promise((r) => setTimeout(r, 20));
			document.getElementById("confirm-cancel")?.click();
		}
	}
	return done.size;
})()`

func (p *tab) clickAll() int {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, browserPatience)
	defer cancel()
	total := 0
	p.eachTab(func() {
		n, err := chromedp.Run(ctx, chromedp.Evaluate[int](clickAll, chromedp.EvalAwaitPromise))
		if err != nil {
			p.t.Fatalf("click every button: %v", err)
		}
		total += n
	})
	return total
}

// eachTab looks at each tab of a page, or at the page.
func (p *tab) eachTab(look func()) {
	p.t.Helper()
	for tab := range max(1, eval[int](p, `document.querySelectorAll("#tabs a").length`)) {
		p.do("open a tab", chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelectorAll("#tabs a")[%d]?.click()`, tab)))
		look()
	}
}

// badHeadings are those that are empty, or leave out a level, and a page that has not one of the first.
const badHeadings = `(() => {
	const all = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].filter((h) => h.checkVisibility());
	const level = (h) => Number(h?.tagName[1] ?? 0);
	const bad = all.filter((h, i) => h.textContent.trim() === "" || level(h) > level(all[i - 1]) + 1);
	const first = all.filter((h) => level(h) === 1).length;
	return bad.map((h) => h.tagName + " " + h.id + " " + h.textContent).join("; ") + (first === 1 ? "" : " " + first + " h1");
})()`

// speak picks a language, by the button between two or the list of more.
func (p *tab) speak(tag string) {
	p.t.Helper()
	if eval[string](p, `document.documentElement.lang`) == tag {
		return
	}
	if eval[bool](p, `document.getElementById("language").tagName === "BUTTON"`) {
		p.click("#language")
	} else {
		p.do("pick "+tag, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{
			const list = document.getElementById("language");
			list.value = [...list.options].find((o) => o.lang === %q).value;
			list.dispatchEvent(new Event("change"));
		}`, tag)))
	}
	p.until("in "+tag, fmt.Sprintf(`document.documentElement.lang === %q`, tag))
}

// named looks at a page as a screen reader does: whatever takes the focus has a role and a name, and each picture one, headings leave out no
// level, and the page says its language.
func (p *tab) named() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, browserPatience)
	defer cancel()
	tree := &accessibility.GetFullAXTreeResult{}
	p.do("read the accessibility tree", chromedp.Func(func(_ context.Context, t *chromedp.Target) (err error) {
		*tree, err = cdp.Call(ctx, t, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		return err
	}))
	said := func(v *accessibility.Value) string {
		if v == nil {
			return ""
		}
		return strings.Trim(string(v.Value), `" `)
	}
	seen := 0
	for _, n := range tree.Nodes {
		focusable := slices.ContainsFunc(n.Properties, func(p *accessibility.Property) bool { return p.Name == "focusable" && said(p.Value) == "true" })
		role, name := said(n.Role), said(n.Name)
		if role == "image" && name == "" && !n.Ignored {
			p.t.Errorf("a picture without a name: %v", n.BackendDOMNodeID)
		}
		if !focusable || n.Ignored || role == "RootWebArea" {
			continue
		}
		if seen++; name == "" && role != "listitem" && role != "main" { // a line of the chat is read by its content, the page by its title
			p.t.Errorf("a %s that takes the focus has no name: %v", role, n.BackendDOMNodeID)
		}
	}
	if seen < 3 || eval[string](p, `document.documentElement.lang`) == "" {
		p.t.Errorf("only %d things take the focus, or no language", seen)
	}
	if bad := eval[string](p, badHeadings); bad != "" {
		p.t.Errorf("headings at %s: %s", eval[string](p, `location.pathname + location.hash`), bad)
	}
}

// TestEveryButton clicks every button of every page in both languages; any error of a page fails the test that opened it.
func TestEveryButton(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	b := startBrowser(t)
	b.before = `window.print = () => {};`
	least := map[string]int{"lobby": 2, "summary": 3, "room": 11, "host": 2, "admin": 29} // besides the languages, which may be a list
	pages := b.pages(s, tokenFor(t, dir, "-sub", "ann", "-name", "Ann"))
	for _, name := range []string{"lobby", "summary", "room", "host", "admin"} { // one after the other: a button of the host's takes away those of the room
		t.Run(name, func(t *testing.T) {
			p := pages[name]
			p.t = t
			if n := p.clickAll(); n < least[name] {
				t.Errorf("only %d buttons", n)
			}
			for _, want := range []string{"en", "zh-CN"} {
				p.speak(want)
				p.eachTab(p.named)
			}
			if n := p.clickAll(); n < least[name] {
				t.Errorf("the other language: only %d buttons", n)
			}
			if words := eval[string](p, `[...document.querySelectorAll("[data-t]")].map((e) => e.textContent).filter((t) => /^[a-z]+\.[\w.]+$/.test(t)).join(" ")`); words != "" {
				t.Errorf("words without a translation: %s", words)
			}
			if name == "admin" {
				p.until("the rules still there", `document.querySelectorAll("#rules tbody tr.rule").length > 5`)
			}
			p.sound()
		})
	}
}

// TestAListOfLanguages: of more than two languages the choice is a list, each in its own words, and what is picked is told.
func TestAListOfLanguages(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	p := startBrowser(t).open(s.url + "/")
	p.do("offer three", chromedp.Evaluate[chromedp.Void](`(async () => {
		const { Language } = await import("/assets/models/language.js");
		const { offerLanguages } = await import("/assets/views/languages.js");
		const words = (name, tag) => ({ "app.languageName": name, "app.tag": tag, "app.languages": "Which" });
		const language = new Language({ en: words("English", "en"), ar: words("العربية", "ar"), zh: words("中文", "zh-CN") }, "zh");
		const show = offerLanguages(language, (code) => { language.code = code; show(); document.title = code; }, new AbortController().signal);
		show();
	})()`))
	p.until("the list", `document.querySelector("select#language")?.value === "zh"`)
	if got := eval[string](p, `[...document.querySelectorAll("#language option")].map((o) => o.lang + " " + o.textContent).join()`); got != "en English,ar العربية,zh-CN 中文" {
		t.Errorf("the list says %s", got)
	}
	p.do("pick Arabic", chromedp.Evaluate[chromedp.Void](`{ const list = document.getElementById("language"); list.value = "ar"; list.dispatchEvent(new Event("change")); }`))
	p.until("it is told", `document.title === "ar" && document.getElementById("language").value === "ar"`)
	p.sound()
}

// TestOlderBrowsers: without all that browsers of the last five years lack, each page shows the same and works.
func TestOlderBrowsers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	b := startBrowser(t)
	b.before = `delete Intl.Segmenter; AbortSignal.any = undefined; AbortSignal.timeout = undefined; window.structuredClone = undefined;
		for (const m of ["at", "toReversed", "toSorted", "with", "findLast"]) delete Array.prototype[m];
		delete Object.hasOwn; delete Object.groupBy; delete HTMLDialogElement.prototype.showModal; delete HTMLDialogElement.prototype.close;
		for (const p of Object.getOwnPropertyNames(Element.prototype)) if (/^aria[A-Z]/.test(p)) delete Element.prototype[p];`
	pages := b.pages(s, tokenFor(t, dir, "-sub", "ann"))
	ann := pages["room"]
	ann.say("hello 👨‍👩‍👧 2021")
	ann.until("sent", `document.querySelectorAll('#chat li.own[data-status="sent"]').length === 1`)
	admin := pages["admin"]
	admin.click(`#tabs a[href="#history"]`)
	admin.until("its tab", `document.querySelector("#tabs a[href='#history']").getAttribute("aria-current") === "page"`)
	for _, p := range pages {
		p.speak("zh-CN")
		p.click("#theme")
		p.until("nothing is called broken", `document.getElementById("broken") === null && !(document.getElementById("trouble")?.checkVisibility())`)
		p.sound()
	}
}

// TestBrokenPage: a script error is said to be one, and not that the server does not answer.
func TestBrokenPage(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	b := startBrowser(t)
	b.before = `delete Map.prototype.get;`
	p := b.open(s.url + "/")
	p.until("it says what is broken", `/page/i.test(document.getElementById("broken")?.textContent)`)
	if eval[bool](p, `document.getElementById("trouble")?.checkVisibility() ?? false`) {
		t.Error("and blames the server")
	}
	p.errors.forgive()
}

// TestOfflineIsAHint: the browser says offline and never online again; the page comes back all the same, and its button
// works meanwhile.
func TestOfflineIsAHint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	b := startBrowser(t)
	ann := b.enter(s, tokenFor(t, dir, "-sub", "ann"))
	ann.do("say offline", chromedp.Evaluate[chromedp.Void](`dispatchEvent(new Event("offline"))`))
	address := strings.TrimPrefix(s.url, "http://")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	ann.until("offline", `document.getElementById("state").dataset.phase === "offline"`)
	ann.until("the button", `document.getElementById("retry").checkVisibility()`)
	startServer(t, dir, "-addr", address)
	ann.until("back by itself", `document.getElementById("state").dataset.phase === "live"`)
	ann.sound()
}

// beside tells whether the first place of a is right of b's, by the glyphs as they are drawn.
const beside = `window.rightOf = (root, a, b) => {
	const left = (text) => {
		const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
		for (let n; (n = walk.nextNode());) {
			const i = n.data.indexOf(text);
			if (i < 0) continue;
			const range = document.createRange();
			range.setStart(n, i);
			range.setEnd(n, i + text.length);
			return range.getBoundingClientRect();
		}
		throw new Error("no " + text + " in " + root.textContent);
	};
	return left(a).left >= left(b).right - 1;
};`

// TestRightToLeft: a name and a text of the other direction keep to themselves wherever they are shown.
func TestRightToLeft(t *testing.T) {
	t.Parallel()
	const name = "שרה כהן"
	dir := t.TempDir()
	s := startServer(t, dir)
	b := startBrowser(t)
	b.before, b.moving = beside, true
	service := tokenFor(t, dir, "-role", "service")
	ann := b.enter(s, tokenFor(t, dir, "-sub", "ann", "-name", "Ann"))
	say := func(id, text string) string {
		t.Helper()
		res := s.call(t, http.MethodPost, "/rooms/demo/danmaku", service, fmt.Sprintf(`{"user":{"id":"sara","name":%q},"id":%q,"text":%q}`, name, id, text))
		if res.status != http.StatusOK {
			t.Fatalf("%v", res.body)
		}
		return res.body.str("mid")
	}
	mid := say("1", "2026 ok")
	line := `[...document.querySelectorAll("#chat li.said")].find((l) => l.textContent.includes("2026 ok"))`
	ann.until("the line", line+` !== undefined`)
	right := func(what, root, a, b string) {
		t.Helper()
		if !eval[bool](ann, fmt.Sprintf(`rightOf(%s, %q, %q)`, root, a, b)) {
			t.Errorf("%s: %q is not right of %q", what, a, b)
		}
	}
	right("chat", line, "2026", name)

	s.call(t, http.MethodPost, "/rooms/demo/moderate", s.hostToken, fmt.Sprintf(`{"action":"pin","mid":%q,"id":"p"}`, mid))
	ann.until("pinned", `document.getElementById("pinned").checkVisibility() && document.getElementById("pinned").textContent.includes("2026")`)
	right("pinned", `document.getElementById("pinned")`, "2026", name)

	s.call(t, http.MethodPost, "/rooms/demo/gifts", service, fmt.Sprintf(`{"user":{"id":"sara","name":%q},"id":"g","gift":"rose"}`, name))
	ann.until("a gift line", `document.querySelector("#chat li.given") !== null`)
	right("gift line", `document.querySelector("#chat li.given")`, "gave", name)
	ann.until("a banner", `document.querySelector("#banners li") !== null`)

	s.call(t, http.MethodPost, "/rooms/demo/moderate", s.hostToken, `{"action":"announce","text":"שלום!","id":"a"}`)
	ann.until("an announcement", `document.querySelector("#chat li.announce") !== null`)
	right("announcement", `document.querySelector("#chat li.announce")`, "שלום", "!")

	say("2", "ערב טוב!")
	// What flies is gone again in a moment: it is judged in the look that finds it.
	ann.until("on the stage, the right way round", `(() => {
		const fly = [...document.querySelectorAll("#danmaku .fly")].find((f) => f.textContent.includes("ערב טוב!"));
		return fly !== undefined && rightOf(fly, "ערב", "!");
	})()`)

	if res := s.call(t, http.MethodPut, "/rooms/demo", s.adminToken, `{"title":"חדר של שרה"}`); res.status != http.StatusOK {
		t.Fatalf("%v", res.body)
	}
	again := b.enter(s, tokenFor(t, dir, "-sub", "eve", "-name", "אווה"))
	again.until("entered", `document.querySelector("#chat li.notice") !== null`)
	ann = again
	right("notice", `document.querySelector("#chat li.notice")`, "You are", "חדר")
	right("notice, the name", `document.querySelector("#chat li.notice")`, "אווה", "You are")
	again.sound()
}

// TestWhoMayNotSpeak: a closed room and a slow one say so on entering, a banned viewer is told just that, and the box is
// off where nothing can be said.
func TestWhoMayNotSpeak(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	b := startBrowser(t)
	put := func(body string) {
		t.Helper()
		if res := s.call(t, http.MethodPut, "/rooms/demo", s.adminToken, body); res.status != http.StatusOK {
			t.Fatalf("%v", res.body)
		}
	}
	off := `document.getElementById("message").disabled && document.getElementById("send").disabled && document.getElementById("like").disabled`

	put(`{"slow_mode_ms":30000}`)
	ann := b.enter(s, tokenFor(t, dir, "-sub", "ann", "-name", "Ann"))
	ann.shows("#chat", "Slow mode: one message every 30 s")
	ann.shows("#hint", "Slow mode: one message every 30 s")
	ann.say("once")
	ann.until("and waits", `document.getElementById("send").hasAttribute("data-cooling")`)

	put(`{"slow_mode_ms":0,"closed":true}`)
	ann.until("closed under her", off)
	bob := b.enter(s, tokenFor(t, dir, "-sub", "bob", "-name", "Bob"))
	bob.shows("#chat", "The room is closed")
	bob.until("his box is off", off)
	if words := eval[string](bob, `document.getElementById("message").placeholder`); words != "The room is closed" {
		t.Errorf("his box says %q", words)
	}
	bob.until("gifts too", `[...document.querySelectorAll("#gifts button")].every((b) => b.disabled)`)
	put(`{"closed":false}`)
	bob.until("open again", "!("+off+")")

	moderate := func(action string) {
		t.Helper()
		res := s.call(t, http.MethodPost, "/rooms/demo/moderate", s.hostToken, fmt.Sprintf(`{"action":%q,"user":"bob","seconds":60,"id":%q}`, action, action))
		if res.status != http.StatusOK {
			t.Fatalf("%s: %v", action, res.body)
		}
	}
	moderate("mute")
	bob.shows("#hint", "You are muted")
	moderate("ban")
	bob.shows("#curtain-text", "A moderator banned you from this room")
	bob.until("his box is off again", off)
	late := b.open(s.url + "/room/demo#token=" + tokenFor(t, dir, "-sub", "bob"))
	late.shows("#curtain-text", "A moderator banned you from this room")
	late.shows("#state", "You are banned")
	if eval[bool](late, `document.getElementById("retry").checkVisibility()`) {
		t.Error("he is offered to try again")
	}
	other := b.open(s.url + "/room/demo#token=" + tokenFor(t, dir, "-sub", "mo", "-role", "moderator", "-rooms", "elsewhere"))
	other.shows("#curtain-text", "for other rooms")
	for _, p := range []*tab{ann, bob, late, other} {
		p.sound()
	}
}

// TestBadgesAndEvents: what a platform says of its users stands beside their words and gifts, and an event of its own is a line, in the
// reader's language and as text.
func TestBadgesAndEvents(t *testing.T) {
	t.Parallel()
	dir, names := t.TempDir(), []string{"-protocol-attributes", "level,badge,fan_club"}
	s := startServer(t, dir, append(names, "-events-types", "draw")...)
	ann := join(t, s.url, "demo", tokenFor(t, dir, append(names, "-sub", "ann", "-name", "Ann", "-attrs", `{"level":12,"badge":"<b>gold","fan_club":"Sky"}`)...))
	bob := startBrowser(t).enter(s, tokenFor(t, dir, "-sub", "bob"))
	ann.ask("danmaku", `,"text":"hello"`)
	ann.ask("gift", `,"gift":"rose"`)
	if res := s.call(t, "POST", "/rooms/demo/events", s.adminToken, `{"id":"1","type":"draw","data":{"text":"<i>begins"}}`); res.status != 200 {
		t.Fatal(res.status, res.body)
	}
	line := func(kind, text string) string {
		return fmt.Sprintf(`[...document.querySelectorAll("#chat li.%s")].some((l) => l.textContent.includes(%q))`, kind, text)
	}
	bob.until("her badges", line("said", "Lv 12<b>gold♥ SkyAnnhello"))
	bob.until("beside the gift", line("given", "Lv 12<b>gold♥ Sky"))
	bob.until("the event", line("announce", "Event draw<i>begins"))
	bob.do("中文", chromedp.Evaluate[chromedp.Void](`document.getElementById("language").click()`))
	bob.until("her badges in Chinese", line("said", "12 级<b>gold粉丝团 SkyAnnhello"))
	bob.until("the event in Chinese", line("announce", "活动 draw<i>begins"))
	bob.sound()
}
