// The rules as a table. It keeps one row for each rule of the draft, whatever happens to the rule.

import { $, make } from "../dom.js";
import { RuleRow } from "./row.js";

/** How far back the small pictures look. */
const SPARK_MS = 300_000;
const LEAST_MS = 60_000;

export class RulesTable {
  #language;
  #steps;
  #rows = new Map();
  #body = $("rules").tBodies[0];
  #filter = "";
  #entries = [];

  constructor(language, steps) {
    this.#language = language;
    this.#steps = { ...steps, open: (key) => this.open(key) };
  }

  /** Forgets the rows: the draft was exchanged, or the language changed. */
  clear() {
    const open = [...this.#rows].filter(([, row]) => row.opened).map(([key]) => key);
    this.#rows.clear();
    this.#entries = [];
    this.#body.replaceChildren();
    return open;
  }

  show(draft, faults) {
    this.#entries = draft.entries;
    const rows = draft.entries.map((entry) => {
      if (!this.#rows.has(entry.key)) this.#rows.set(entry.key, new RuleRow(entry.key, this.#language, this.#steps));
      const row = this.#rows.get(entry.key);
      row.show(entry, { touched: draft.touched(entry.key), fields: draft.touchedFields(entry.key), faults: faults.get(entry.key) ?? [] });
      return row;
    });
    for (const key of this.#rows.keys()) if (!draft.entry(key)) this.#rows.delete(key);
    const wanted = rows.flatMap((row) => [row.element, row.below]);
    if (wanted.length !== this.#body.children.length || wanted.some((e, i) => this.#body.children[i] !== e)) this.#body.replaceChildren(...wanted);
    this.filter(this.#filter);
  }

  open(key, path = null) {
    const row = this.#rows.get(key);
    if (!row) return;
    const open = path !== null || !row.opened;
    for (const [other, r] of this.#rows) if (other !== key && r.opened) r.toggle(false);
    row.toggle(open);
    this.#steps.shown();
    if (path !== null) {
      row.element.scrollIntoView({ block: "nearest" });
      row.focus(path);
    }
  }

  /** Shows the rules of one action only; all for "". */
  filter(action) {
    this.#filter = action;
    for (const { key, rule } of this.#entries) {
      const row = this.#rows.get(key);
      const seen = action === "" || rule.action.includes(action) || rule.action.some((a) => action === "api" && a.startsWith("api:"));
      row.element.classList.toggle("away", !seen);
      row.below.classList.toggle("away", !seen);
    }
  }

  showTraffic(decisions) {
    const first = decisions.points("all")[0]?.at ?? decisions.now;
    const window = { from: Math.max(decisions.now - SPARK_MS, Math.min(first, decisions.now - LEAST_MS)), to: decisions.now };
    for (const { key, rule, was } of this.#entries) {
      const name = `rule:${was?.name ?? rule.name}`;
      const points = decisions.points(name).filter((p) => p.at >= window.from);
      this.#rows.get(key)?.showTraffic(points, decisions.last(name), window);
    }
  }
}

/** The choices above the table. */
export function fillFilter(list, actions, nameOf, onPick) {
  const options = ["", ...actions].map((action) => {
    const label = make("label", "pill");
    const input = make("input");
    input.type = "radio";
    input.name = "filter";
    input.value = action;
    input.checked = action === "";
    input.addEventListener("change", () => onPick(action));
    label.append(input, make("span", "", nameOf(action)));
    return label;
  });
  list.replaceChildren(...options);
}
