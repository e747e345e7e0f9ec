// The operator's page: what this node does, its limits and their history, and why somebody is limited.

import words from "./i18n/admin.js";
import { tokenInFragment } from "./models/token.js";
import { Overview } from "./views/admin/overview.js";
import { $, aria } from "./views/dom.js";
import { LimitCalls } from "./views/limits/calls.js";
import { LimitsDesk } from "./views/limits/desk.js";
import { ExplainView } from "./views/limits/explain.js";
import { HistoryView } from "./views/limits/history.js";
import { openPage } from "./views/page.js";
import { keepToken, takeToken } from "./views/session.js";

const VIEWS = ["overview", "limits", "history", "explain"];
/** How often the set in force is looked at when /metrics does not tell of a change. */
const LOOK_MS = 15_000;

class Admin {
  #page;
  #desk;
  #history;
  #explain;
  #overview;
  #view = "";

  constructor(page, token) {
    this.#page = page;
    const { signal } = page;
    const calls = new LimitCalls(token, page);
    this.#overview = new Overview(token, page, { changed: () => this.#changed(), traffic: (d) => this.#desk.showTraffic(d), why: (q) => this.#why(q) });
    this.#desk = new LimitsDesk(calls, page, () => this.#history.refresh());
    this.#history = new HistoryView(calls, page, {
      restored: (set) => this.#desk.restored(set),
      propose: (rules, note) => {
        this.#desk.propose(rules, note);
        location.hash = "limits";
      },
    });
    this.#explain = new ExplainView(calls, page);
    addEventListener("hashchange", () => this.#go(), { signal });
    const timer = setInterval(() => document.hidden || this.#desk.refresh(), LOOK_MS);
    signal.addEventListener("abort", () => clearInterval(timer));
    this.#go();
    this.#start();
  }

  async #start() {
    const status = await this.#desk.refresh();
    if (status === 401 || status === 403) showDoor(this.#page, "admin.doorRefused");
    else this.#history.refresh();
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
    scrollTo(0, 0);
  }
}

function showDoor(page, said) {
  for (const view of VIEWS) $(`view-${view}`).hidden = true;
  $("tabs").hidden = true;
  $("state").hidden = true;
  $("door").hidden = false;
  $("door-said").dataset.t = said;
  $("door-said").textContent = page.language.text(said);
  $("door-token").focus();
  $("door").addEventListener("submit", (event) => {
    event.preventDefault();
    keepToken($("door-token").value.trim());
    location.replace("/");
    location.reload();
  }, { signal: page.signal });
}

const page = openPage(words);
document.title = "liveroom";
const token = takeToken();
if (token) new Admin(page, token);
else showDoor(page, "admin.doorHint");
