package main

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// line is the first line of the chat that contains a text.
func line(text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("#chat li")].find((l) => l.textContent.includes(%q))`, text)
}

// press clicks what an expression finds.
func (p *tab) press(what, expression string) {
	p.t.Helper()
	p.until(what, expression+" !== undefined && "+expression+" !== null")
	p.do(what, chromedp.Evaluate[chromedp.Void](expression+".click()"))
}

// choose opens the menu of a line and takes the item with that word.
func (p *tab) choose(text, item string) {
	p.t.Helper()
	p.press("the name at "+text, line(text)+`?.querySelector(".who")`)
	p.press(item, fmt.Sprintf(`[...document.querySelectorAll(".menu [role=menuitem]")].find((b) => (b.getAttribute("aria-label") ?? b.textContent) === %q)`, item))
}

// TestModeration is an evening with staff: from a message itself a moderator deletes, mutes, bans and takes it back, by pointer and by
// keyboard; the host sees what is in force, lifts it, says who may speak, and makes a moderator of a viewer, at once.
func TestModeration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	b := startBrowser(t)
	ann := b.enter(s, tokenFor(t, dir, "-sub", "ann", "-name", "Ann"))
	bob := b.enter(s, tokenFor(t, dir, "-sub", "bob", "-name", "Bob"))
	mia := b.enter(s, tokenFor(t, dir, "-sub", "mia", "-name", "Mia", "-role", "moderator", "-rooms", "demo"))
	host := b.open(s.url + "/host/demo#token=" + s.hostToken)
	host.until("the desk", `document.getElementById("title").textContent !== ""`)

	ann.say("buy cheap gold")
	mia.until("Ann's line", saying("cheap gold")+" === 1")
	mia.do("by keyboard: the last line, its menu", chromedp.Evaluate[chromedp.Void](`document.getElementById("chat").focus()`),
		chromedp.KeyEvent(kb.ArrowUp), // a key pressed by the protocol gives its character also where the page has taken the key
		chromedp.Evaluate[chromedp.Void](`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }))`))
	mia.until("a menu with the focus in it", `document.activeElement?.getAttribute("role") === "menuitem" && document.querySelector(".menu").getAttribute("aria-label") === "Ann"`)
	mia.do("Escape", chromedp.KeyEvent(kb.Escape))
	mia.until("no menu, and the focus where it was", `!document.querySelector(".menu") && document.activeElement === `+line("cheap gold"))
	mia.choose("cheap gold", "Delete")
	ann.until("her text is gone", saying("cheap gold")+" === 0 && "+saying("Message removed")+" === 1")
	mia.until("it says how, and the focus is still at the message", `document.querySelector(".toast")?.textContent.includes("Ctrl+Z") === true && document.activeElement === `+line("Message removed"))
	mia.do("undo by keyboard", chromedp.Evaluate[chromedp.Void](`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "z", ctrlKey: true, bubbles: true, cancelable: true }))`))
	ann.until("and is back", saying("cheap gold")+" === 1")

	mia.choose("cheap gold", "Mute: 60 s")
	ann.until("muted, and told for how long", saying("You are muted for")+" === 1")
	host.until("on the desk", `document.getElementById("sanctions").textContent.includes("ann") && document.getElementById("audit").textContent.includes("muted ann")`)
	mia.press("Undo", `[...document.querySelectorAll(".toast")].find((l) => l.textContent.includes("Ann is muted"))?.querySelector("button")`)
	ann.until("she may speak again", saying("You can speak again")+" === 1")

	mia.choose("cheap gold", "Ban: Other…")
	mia.until("the form, with the focus in it", `document.activeElement?.closest(".sheet[role=dialog][aria-modal=true] form") != null`)
	mia.do("a reason", chromedp.SendKeys(`.ask input[type="text"]`, "sells gold\r"))
	ann.until("out", `document.getElementById("state").dataset.phase === "refused"`)
	host.until("with the reason", `document.getElementById("sanctions").textContent.includes("sells gold")`)
	host.press("lift", `document.querySelector("#sanctions button.small")`)
	host.until("nothing in force", `document.getElementById("sanctions-none").checkVisibility()`)
	ann.do("she comes again", chromedp.Evaluate[chromedp.Void](`location.reload()`))
	ann.until("and is in", `document.getElementById("state")?.dataset.phase === "live"`)

	host.fill("#words-new", "silver")
	host.click("#words-add button")
	host.shows("#words-preview", "0 of ")
	host.click("#words-publish")
	host.shows("#words-said", "In force")
	ann.say("rather silver")
	ann.until("held", `[...document.querySelectorAll('#chat li[data-status="held"]')].some((l) => l.textContent.includes("rather silver"))`)
	host.press("release", `document.querySelector("#held-list .small.good")`)
	bob.until("shown", saying("rather silver")+" === 1")
	ann.until("sent", `[...document.querySelectorAll('#chat li[data-status="sent"]')].some((l) => l.textContent.includes("rather silver"))`)
	host.until("decided", `document.getElementById("held-count").textContent === "" && document.getElementById("held-list").textContent.includes("released by")`)

	host.click("#words-said button")
	host.shows("#words-said", "Undone")
	if filter := s.call(t, http.MethodGet, "/rooms/demo", s.hostToken, "").body["filter"]; len(filter.(map[string]any)) != 0 {
		t.Errorf("the list after its undo: %v", filter)
	}

	bob.choose("cheap gold", "Reply")
	bob.say("no thanks")
	ann.until("an answer to her", line("no thanks")+`?.querySelector(".to")?.textContent === "to Ann"`)

	mia.until("Bob's answer", saying("no thanks")+" === 1")
	mia.do("go to the line", chromedp.Evaluate[chromedp.Void](line("no thanks")+".focus()"))
	mia.choose("no thanks", "Who is this")
	mia.until("Bob in numbers", `document.querySelector(".sheet .who")?.textContent.includes("no thanks") === true && document.querySelector(".sheet .who .mono").textContent === "bob"`)
	mia.do("a click on its text, Escape", chromedp.Click(".sheet .who-name"), chromedp.KeyEvent(kb.Escape))
	mia.until("closed, and the focus where it was", `!document.querySelector(".sheet") && document.activeElement === `+line("no thanks"))

	host.do("only staff", chromedp.Evaluate[chromedp.Void](`{
		const speak = document.getElementById("speak");
		speak.value = "staff";
		speak.dispatchEvent(new Event("input", { bubbles: true }));
		document.getElementById("settings").requestSubmit();
	}`))
	bob.until("he is told", saying("Only the host and moderators may speak now")+" === 1")
	bob.say("let me")
	bob.until("and held to it", `[...document.querySelectorAll('#chat li[data-status="failed"]')].some((l) => l.textContent.includes("let me"))`)
	host.do("a moderator more", chromedp.SendKeys("#appoint", "bob\r"))
	bob.until("he is one", saying("You are a moderator of this room now")+" === 1 && "+line("cheap gold")+`.hasAttribute("data-acts")`)
	bob.say("order, please")
	ann.until("and speaks", saying("order, please")+" === 1")
	bob.choose("cheap gold", "Pin")
	ann.until("pinned", `document.getElementById("pinned").textContent.includes("cheap gold")`)
	host.press("the pin, in the audit", `[...document.querySelectorAll("#audit li")].find((l) => l.textContent.includes("pinned a message"))?.querySelector("button")`)
	ann.until("and taken back there", `document.getElementById("pinned").hidden`)
	bob.choose("cheap gold", "Clean up: all of the last hour")
	ann.until("nothing of hers is left", saying("cheap gold")+" === 0 && "+saying("rather silver")+" === 0 && "+saying("no thanks")+" === 1")
}

// TestRaidOnTheDesk: accounts made today say nearly the same. The host sees the sample and what a shield would have done; with one click what
// was held and taken back is shown, with another it is dropped.
func TestRaidOnTheDesk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir, "-protocol-attributes", "since", "-rooms-account-attribute", "since")
	enter := func(name string, made time.Duration) *client {
		return join(t, s.url, "demo", tokenFor(t, dir, "-protocol-attributes", "since", "-sub", name, "-attrs", fmt.Sprintf(`{"since":%d}`, time.Now().Add(-made).Unix())))
	}
	b := startBrowser(t)
	host := b.open(s.url + "/host/demo#token=" + s.hostToken)
	host.until("the desk", `document.getElementById("title").textContent !== ""`)
	host.do("a shield", chromedp.Evaluate[chromedp.Void](`{
		document.getElementById("shield").value = "auto";
		document.getElementById("shield").dispatchEvent(new Event("input", { bubbles: true }));
		document.getElementById("settings").requestSubmit();
	}`))
	host.until("it is set", `document.getElementById("settings-said").textContent === "Saved"`)
	host.do("listen as a screen reader does", chromedp.Evaluate[chromedp.Void](`{
		window.heardAt = [];
		new MutationObserver(() => heardAt.push(performance.now())).observe(document.getElementById("heard"), { childList: true });
	}`))
	for i := range 6 { // talk as it is without a raid
		enter(fmt.Sprint("regular-", i), 90*24*time.Hour).send(fmt.Sprintf(`{"op":"danmaku","id":"r","text":"a talk among regulars, part %d"}`, i*i*7919))
	}
	host.until("the talk", saying("among regulars")+" === 6")
	host.click("#shield-try")
	host.shows("#shield-said", "There was no raid in 6 messages.")

	const raiders = 24
	raid := func(text string) {
		for i := range raiders {
			c := enter(fmt.Sprintf("%s-%d", text[:4], i), time.Hour)
			c.send(fmt.Sprintf(`{"op":"danmaku","id":"r","text":"%s %d"}`, text, i))
			c.wait("an answer", func(e event) bool { return e.kind() == "ack" && e.num("code") < 300 })
		}
	}
	raid("join group 8812 for free coins")
	host.shows("#raid", "join group 8812 for free coins")
	host.until("stubs of what was shown", saying("Message removed")+" > 5")
	host.until("a queue", `Number(document.getElementById("held-count").textContent) === `+fmt.Sprint(raiders))
	host.click("#shield-try")
	host.shows("#shield-said", "like “join group 8812 for free coins")
	host.click("#raid-none")
	host.until("no raid", `document.getElementById("raid").hidden`)
	host.until("all of it", saying("for free coins")+fmt.Sprintf(" === %d", raiders))
	host.until("in the audit", `document.getElementById("audit").textContent.includes("released what the shield held: 24")`)

	if !eval[bool](host, `heardAt.length > 0 && heardAt.every((t, i) => i === 0 || t - heardAt[i - 1] > 5500) && document.querySelector("#chat[role=log]").getAttribute("aria-live") === "off"`) {
		t.Errorf("a screen reader is told of the flood at %v ms", eval[[]float64](host, `heardAt`))
	}

	raid("best gold shop at example dot com")
	host.shows("#raid", "best gold shop at example dot com")
	host.until("a queue", `Number(document.getElementById("held-count").textContent) === `+fmt.Sprint(raiders))
	host.click("#raid-drop")
	host.until("no raid", `document.getElementById("raid").hidden`)
	host.until("nothing of it is left", `document.getElementById("held-count").textContent === "" && `+saying("gold shop")+" === 0")
}
