// The operator's page: what this node does, its limits and their history, and why somebody is limited.

import words from "./i18n/admin.js";
import { tokenInFragment } from "./models/token.js";
import { Overview } from "./views/admin/overview.js";
import { $, aria, every } from "./views/dom.js";
import { LimitCalls } from "./views/limits/calls.js";
import { LimitsDesk } from "./views/limits/desk.js";
import { ExplainView } from "./views/limits/explain.js";
import { HistoryView } from "./views/limits/history.js";
import { EditionCalls } from "./views/lists/calls.js";
import { GiftsDesk, tellGiftChanges } from "./views/lists/gifts.js";
import { WordsDesk, tellWordChanges } from "./views/lists/words.js";
import { openPage } from "./views/page.js";
import { get } from "./views/poll.js";
import { keepToken, takeToken } from "./views/session.js";

const VIEWS = ["overview", "limits", "history", "explain", "words", "gifts"];
/** How often the set in force is looked at when /metrics does not tell of a change. */
const LOOK_MS = 15_000;

class Admin {
  #page;
  #desk;
  #history;
  #explain;
  #overview;
  #lists;
  #view = "";
  #token;

  /** Without a token the browser's cookie says who has signed in. */
  constructor(page, token) {
    this.#page = page;
    this.#token = token;
    const { signal } = page;
    const calls = new LimitCalls(token, page);
    this.#overview = new Overview(token, page, { answered: (status) => this.#answered(status), changed: () => this.#changed(), traffic: (d) => this.#desk.showTraffic(d), why: (q) => this.#why(q) });
    this.#desk = new LimitsDesk(calls, page, () => this.#history.refresh());
    this.#history = new HistoryView(calls, page, {
      restored: (set) => this.#desk.restored(set),
      propose: (rules, note) => {
        this.#desk.propose(rules, note);
        location.hash = "limits";
      },
    });
    this.#explain = new ExplainView(calls, page);
    this.#lists = { words: wordsOf(token, page), gifts: giftsOf(token, page) };
    addEventListener("hashchange", () => this.#go(), { signal });
    every(LOOK_MS, () => document.hidden || this.#look(), signal);
    this.#go();
    this.#start();
  }

  async #start() {
    const status = await this.#desk.refresh();
    if (status === 401 || status === 403) showDoor(this.#page, this.#token ? "admin.doorRefused" : "admin.signInNorole", !this.#token);
    else this.#history.refresh();
  }

  /** What was begun here stays while somebody signs in again in another window. */
  #answered(status) {
    if (!this.#token) $("signed-out").hidden = status !== 401;
  }

  async #look() {
    await this.#desk.refresh();
    await this.#lists[this.#view]?.refresh();
  }

  async #changed() {
    await this.#desk.refresh();
    await this.#history.refresh();
  }

  #why(question) {
    location.hash = "explain";
    this.#explain.about(question);
  }

  #go() {
    if (tokenInFragment(location.hash)) return location.reload(); // somebody else signs in
    const asked = location.hash.slice(1);
    const view = VIEWS.includes(asked) ? asked : "overview";
    if (view === this.#view) return;
    this.#view = view;
    for (const name of VIEWS) $(`view-${name}`).hidden = name !== view;
    for (const link of $("tabs").querySelectorAll("a")) {
      aria(link, "current", link.hash === `#${view}` ? "page" : null);
    }
    this.#explain.shown = view === "explain";
    this.#overview.shown = view === "overview";
    this.#lists[view]?.refresh();
    scrollTo(0, 0);
  }
}

/** A desk and its history: `{refresh()}`, which reads both when there is another version. */
function withHistory(of, calls, page, make, tell) {
  let desk = null;
  const history = new HistoryView(calls, page, { restored: () => desk.refresh() }, of, tell);
  desk = make({ published: () => history.refresh(), goBack: (version) => history.goBack(version) });
  let told = null;
  return {
    refresh: async () => {
      await desk.refresh();
      if (desk.version === told) return;
      told = desk.version;
      await history.refresh();
    },
  };
}

function wordsOf(token, page) {
  const calls = new EditionCalls("/filter", token, page);
  return withHistory("words", calls, page, ({ published, goBack }) => new WordsDesk(calls, page, { onPublished: published, goBack }), tellWordChanges);
}

function giftsOf(token, page) {
  const calls = new EditionCalls("/gifts", token, page);
  return withHistory("gifts", calls, page, (steps) => new GiftsDesk(calls, page, steps), tellGiftChanges);
}

function showDoor(page, said, oidc = false) {
  for (const view of VIEWS) $(`view-${view}`).hidden = true;
  $("tabs").hidden = true;
  $("state").hidden = true;
  $("door").hidden = false;
  $("door-said").dataset.t = said;
  $("door-said").textContent = page.language.text(said);
  $("door-oidc").hidden = !oidc;
  $(oidc ? "door-oidc" : "door-token").focus();
  $("door").addEventListener("submit", (event) => {
    event.preventDefault();
    keepToken($("door-token").value.trim());
    location.replace("/");
    location.reload();
  }, { signal: page.signal });
}

/** What the server says in the address of a sign-in that came to nothing. */
const SIGN_IN = { away: "admin.signInAway", norole: "admin.signInNorole", refused: "admin.signInRefused", stale: "admin.signInStale" };

/** Opens the page for who has signed in, else the door. */
async function enter(page) {
  const said = SIGN_IN[new URLSearchParams(location.hash.slice(1)).get("signin")];
  if (said) history.replaceState(null, "", "/");
  const { body } = await get("/signin", null, page.signal);
  if (!body?.user) return showDoor(page, said ?? "admin.doorHint", body?.oidc);
  const sayWho = () => {
    $("who").textContent = [body.name ?? body.user, ...(body.reader ? [page.language.text("admin.readsOnly")] : [])].join(" · ");
  };
  sayWho();
  page.onLanguage(sayWho);
  $("who").hidden = $("sign-out").hidden = false;
  $("sign-out").addEventListener("click", async () => {
    await fetch("/signout", { method: "POST", signal: page.signal });
    location.replace("/");
  }, { signal: page.signal });
  new Admin(page, null);
}

const page = openPage(words);
document.title = "liveroom";
const token = takeToken();
if (token) new Admin(page, token);
else enter(page);
