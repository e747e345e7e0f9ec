// While the guard watches a change: how long still, and what it sees.

import { readWatch } from "../../models/limits/preview.js";
import { $ } from "../dom.js";
import { percent } from "./preview-bars.js";
import { timeText } from "./values.js";

const ASK_MS = 2000;
const ENDS = ["kept", "rolled_back", "superseded", "unjudged"];
/** How long the guard watches when it does not say so itself. */
const WATCH_MS = 60_000;

/** The server's clock may be another one than this page's: it tells how long a watch lasts yet. */
const timed = (watch) => ({ ...watch, ends: performance.now() + watch.leftMs });

export class GuardStrip {
  #calls;
  #page;
  #onRollback;
  #watch = null;
  #timer = 0;

  constructor(calls, page, onRollback) {
    this.#calls = calls;
    this.#page = page;
    this.#onRollback = onRollback;
    page.onLanguage(() => this.#show());
    page.signal.addEventListener("abort", () => clearTimeout(this.#timer));
    $("guard-close").addEventListener("click", () => this.#end(), { signal: page.signal });
  }

  /** Follows the guard's watch over a version that was just put in force. */
  watch(version, previous) {
    clearTimeout(this.#timer);
    this.#watch = timed({ state: "waiting", version, previous, leftMs: WATCH_MS, ofMs: WATCH_MS, users: 0, share: 0 });
    this.#ask();
  }

  /** Shows what the guard had to do with a set that came into force: it made it, or watches it for another page. */
  async look(set) {
    if (set.kind === "guard") {
      clearTimeout(this.#timer);
      this.#watch = { state: "went", previous: set.restores, note: set.note, when: Date.parse(set.time), users: 0, share: 0, ends: 0, ofMs: 0 };
      return this.#show();
    }
    const { status, body } = await this.#calls.guard();
    const seen = status === 200 ? readWatch(body) : null;
    if (this.#page.signal.aborted || seen === null || seen.leftMs <= 0 || seen.version === this.#watch?.version) return;
    clearTimeout(this.#timer);
    this.#watch = timed(seen);
    this.#ask();
  }

  async #ask() {
    const { status, body } = await this.#calls.guard();
    if (this.#page.signal.aborted || this.#watch === null) return;
    if (status === 404 || status === 405) return this.#end(); // this server shows no guard
    const seen = status === 200 ? readWatch(body) : null;
    if (seen?.version === this.#watch.version) this.#watch = timed(seen);
    this.#show();
    if (this.#watch.state === "rolled_back") return this.#onRollback();
    const over = ENDS.includes(this.#watch.state) || performance.now() > this.#watch.ends + 5000;
    if (!over) this.#timer = setTimeout(() => this.#ask(), ASK_MS);
  }

  #end() {
    clearTimeout(this.#timer);
    this.#watch = null;
    this.#show();
  }

  #show() {
    const strip = $("guard");
    const watch = this.#watch;
    strip.hidden = watch === null || watch.users === undefined;
    if (!watch) return;
    const { language } = this.#page;
    strip.dataset.state = watch.state;
    const left = Math.max(0, watch.ends - performance.now());
    const values = { version: watch.version, previous: watch.previous, t: language.duration(left), note: watch.note, when: timeText(watch.when, language), users: watch.users, share: percent(Math.max(0, watch.share), language) };
    $("guard-said").textContent = language.text(`limits.guard.${watch.state}`, values);
    $("guard-bar").style.transform = `scaleX(${Math.min(1, left / Math.max(1, watch.ofMs))})`;
  }
}
