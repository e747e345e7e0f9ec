// The charts of the overview: all, or one action or rule, large; the actions beside it, small.

import { actionName } from "../../models/limits/sentence.js";
import { $, aria, make } from "../dom.js";
import { fillTable, row, stacked } from "../tables.js";
import { Spark } from "../limits/spark.js";
import { percent } from "../limits/preview-bars.js";
import { Chart } from "./chart.js";

const SPANS_MIN = [2, 5, 10];
const MOST_RULES = 12;
/** A page just opened shows its first moments over this much time. */
const LEAST_MS = 60_000;

export class Charts {
  #page;
  #large;
  #small = new Map();
  #key = "all";
  #minutes = 5;
  #decisions;

  constructor(decisions, page) {
    this.#decisions = decisions;
    this.#page = page;
    this.#large = new Chart(page.language, { height: 220 });
    $("chart").append(this.#large.element);
    $("span").addEventListener("change", (event) => {
      this.#minutes = Number(event.target.value);
      this.show();
    }, { signal: page.signal });
    page.onLanguage(() => this.#relabel());
    this.#relabel();
  }

  #relabel() {
    const { language } = this.#page;
    $("span").replaceChildren(...SPANS_MIN.map((n) => {
      const option = make("option", "", language.text("time.m", { n }));
      option.value = n;
      option.selected = n === this.#minutes;
      return option;
    }));
    this.#small.clear();
    $("actions").replaceChildren();
    this.show();
  }

  #choose(key) {
    this.#key = this.#key === key ? "all" : key;
    this.show();
  }

  show() {
    const d = this.#decisions;
    const ms = Math.min(d.windowMs, this.#minutes * 60_000);
    const first = d.points("all")[0]?.at ?? d.now;
    const window = { from: Math.max(d.now - ms, Math.min(first, d.now - LEAST_MS)), to: d.now };
    const pick = (key) => d.points(key).filter((p) => p.at >= window.from);
    const marks = d.marks.filter((m) => m.at >= window.from);
    $("chart-name").textContent = this.#nameOf(this.#key);
    $("chart-all").hidden = this.#key === "all";
    this.#large.show(pick(this.#key), marks, window);
    this.#showActions(pick, marks, window);
    this.#showRules(pick, window);
  }

  /** Goes back to all of it. */
  all() {
    this.#choose(this.#key);
  }

  #nameOf(key) {
    const { language } = this.#page;
    if (key === "all") return language.text("admin.everything");
    const name = key.slice(key.indexOf(":") + 1);
    return key.startsWith("action:") ? actionName(name, language) : name;
  }

  #showActions(pick, marks, window) {
    const { language } = this.#page;
    for (const action of this.#decisions.actions()) {
      if (this.#small.has(action)) continue;
      const chart = new Chart(language, { height: 92, small: true });
      const tile = make("button", "tile");
      tile.type = "button";
      tile.append(make("span", "name", actionName(action, language)), chart.element);
      tile.addEventListener("click", () => this.#choose(`action:${action}`));
      $("actions").append(tile);
      this.#small.set(action, { chart, tile });
    }
    for (const [action, { chart, tile }] of this.#small) {
      chart.show(pick(`action:${action}`), marks, window);
      aria(tile, "pressed", String(this.#key === `action:${action}`));
    }
  }

  #showRules(pick, window) {
    const { language } = this.#page;
    const rules = this.#decisions.rules().slice(0, MOST_RULES);
    fillTable($("decisions"), $("decisions-none"), rules.map((r) => {
      const spark = new Spark();
      spark.show(pick(`rule:${r.rule}`), window);
      const name = make("button", "open", r.rule);
      name.type = "button";
      name.addEventListener("click", () => this.#choose(`rule:${r.rule}`));
      aria(name, "pressed", String(this.#key === `rule:${r.rule}`));
      const asked = r.allow + r.degrade + r.reject + r.shadow;
      const share = make("b", r.reject > 0 ? "bad" : "soft", percent(asked > 0 ? r.reject / asked : 0, language));
      const lost = r.shadow > 0 ? stacked(language.compact(Math.round(r.reject)), language.text("admin.wouldLose", { n: Math.round(r.shadow) })) : language.compact(Math.round(r.reject));
      return row([name, language.text(`limits.scopeOf.${r.scope}`), spark.element, language.compact(Math.round(r.allow)), language.compact(Math.round(r.degrade)), lost, share], [3, 4, 5, 6]);
    }));
  }
}
