// One rule in the table: its numbers can be changed in place, its name opens the rest.

import { actionName, perText, roleName } from "../../models/limits/sentence.js";
import { WINDOWS } from "../../models/limits/vocabulary.js";
import { aria, make } from "../dom.js";
import { button, showFaults, textInput, toggle } from "./controls.js";
import { Editor } from "./editor.js";
import { Spark } from "./spark.js";

/** How many columns a row spans. */
export const COLUMNS = 9;

export class RuleRow {
  element = make("tr", "rule");
  below = make("tr", "drawer");
  #language;
  #steps;
  #key;
  #open = make("button", "open");
  #said = make("small", "fault");
  #live = make("td", "live");
  #flow = make("span", "flow");
  #spark = new Spark();
  #cells = {};
  #controls = [];
  #shape = null;
  #editor = null;

  /** `steps`: `{edit(key, path, value), open(key), duplicate(key), remove(key), restore(key)}`. */
  constructor(key, language, steps) {
    this.#key = key;
    this.#language = language;
    this.#steps = steps;
    this.#open.type = "button";
    this.#open.addEventListener("click", () => steps.open(key));
    const name = make("td", "name");
    name.append(this.#open, this.#said);
    this.element.append(name);
    for (const cell of ["action", "scope", "amount", "burst", "degrade", "except", "shadow"]) {
      this.#cells[cell] = make("td", cell);
      this.element.append(this.#cells[cell]);
    }
    this.#live.append(this.#spark.element, this.#flow);
    this.element.append(this.#live);
    this.below.hidden = true;
    this.element.dataset.key = key;
  }

  get opened() {
    return !this.below.hidden;
  }

  toggle(open) {
    this.below.hidden = !open;
    aria(this.#open, "expanded", String(open));
    this.element.classList.toggle("is-open", open);
    if (open && !this.#editor) {
      const key = this.#key;
      this.#editor = new Editor(this.#language, {
        edit: (path, value) => this.#steps.edit(key, path, value),
        duplicate: () => this.#steps.duplicate(key),
        remove: () => this.#steps.remove(key),
        restore: () => this.#steps.restore(key),
      });
      const cell = make("td");
      cell.colSpan = COLUMNS;
      cell.append(this.#editor.element);
      this.below.replaceChildren(cell);
      this.below.id = `drawer-${key}`;
      this.#open.setAttribute("aria-controls", this.below.id);
    }
  }

  focus(path) {
    if (this.opened) this.#editor.focus(path);
    else this.#open.focus();
  }

  /** Shows the rule as it is in the draft. */
  show(entry, { touched, fields, faults }) {
    const { rule, was, removed } = entry;
    const shape = JSON.stringify([rule.tiers, rule.algorithm, rule.degrade && 1, removed]);
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#numbers(rule, removed);
    }
    this.element.dataset.state = removed ? "removed" : was === null ? "new" : touched ? "changed" : "";
    this.#open.textContent = rule.name || "–";
    aria(this.#open, "expanded", String(this.opened));
    this.#cells.action.replaceChildren(...rule.action.map((a) => make("span", "tag", actionName(a, this.#language))));
    this.#cells.scope.textContent = this.#t(`scopeOf.${rule.scope}`);
    this.#extras(rule);
    for (const [cell, of] of Object.entries({ amount: ["rate", "per", "tiers", "algorithm"], burst: ["burst"], degrade: ["degrade", "fold"], shadow: ["shadow"] })) {
      this.#cells[cell].classList.toggle("changed", was !== null && of.some((f) => fields.includes(f)));
    }
    for (const control of this.#controls) control.show(rule);
    showFaults(this.#controls, faults.map((f) => ({ path: f.field, text: f.text })));
    this.#said.textContent = faults.length > 0 && !this.opened ? faults[0].text : "";
    this.element.classList.toggle("bad", faults.length > 0);
    if (this.opened && removed) this.toggle(false);
    if (this.opened) this.#editor.show(entry, faults);
  }

  /** Shows what the rule did over the last minutes. */
  showTraffic(points, last, window) {
    this.#spark.show(points, window);
    const lost = last.reject + last.degrade + last.shadow;
    this.#flow.textContent = points.length === 0 ? "" : lost > 0 ? this.#t("flowLost", { n: this.#language.rate(lost) }) : this.#t("flow", { n: this.#language.rate(last.allow) });
    this.#flow.dataset.tone = last.reject > 0 ? "bad" : lost > 0 ? "warn" : "";
  }

  #t(key, values) {
    return this.#language.text(`limits.${key}`, values);
  }

  #number(path, label, options = {}) {
    const control = textInput(path, {
      kind: "number", className: "num", label: this.#t("of", { field: this.#t(label), rule: this.#open.textContent }),
      onEdit: (p, value) => this.#steps.edit(this.#key, p, value), ...options,
    });
    this.#controls.push(control);
    return control.input;
  }

  /** The cells whose shape depends on the rule: numbers, or words where there are several. */
  #numbers(rule, removed) {
    this.#controls = [];
    const { amount, burst, degrade, shadow } = this.#cells;
    this.#open.textContent = rule.name;
    if (removed) {
      for (const cell of Object.values(this.#cells)) cell.replaceChildren();
      shadow.append(button(this.#t("restoreRule"), "link", () => this.#steps.restore(this.#key)));
      return;
    }
    if (rule.tiers?.length > 0) this.#tiers(rule.tiers);
    else {
      const pace = make("span", "pace");
      if (rule.algorithm !== "concurrency") pace.append(this.#number("rate", "rate"), make("span", "per", "/"));
      pace.append(this.#number("per", "per", { kind: "text", className: "num short", placeholder: "1s" }));
      amount.replaceChildren(pace);
      burst.replaceChildren(WINDOWS.includes(rule.algorithm) ? make("span", "soft", "–") : this.#number("burst", "burst"));
    }
    if (rule.algorithm) amount.append(make("small", "", this.#t(`algorithmOf.${rule.algorithm}`)));
    const extra = rule.degrade ? [this.#number("degrade.rate", "degradeRate")] : [];
    degrade.replaceChildren(...extra);
    if (rule.degrade) degrade.append(make("span", "per", `/ ${perText(rule.degrade.per, this.#language)}`));
    const off = toggle("shadow", this.#t("of", { field: this.#t("shadow"), rule: rule.name }), { hidden: true, onEdit: (p, v) => this.#steps.edit(this.#key, p, v) });
    this.#controls.push(off);
    shadow.replaceChildren(off.element);
  }

  #tiers(tiers) {
    const { amount, burst } = this.#cells;
    const line = (below, text) => {
      const e = make("span", "tierline");
      e.append(make("b", "number", text), make("i", "", below));
      return e;
    };
    amount.replaceChildren(...tiers.map((tier) => line(
      tier.below ? this.#t("upTo", { n: this.#language.compact(tier.below) }) : this.#t("aboveShort"),
      `${this.#language.compact(Number(tier.rate) || 0)} / ${perText(tier.per, this.#language)}`)));
    burst.replaceChildren(...tiers.map((tier) => make("span", "tierline number", this.#language.compact(Number(tier.burst) || 0))));
  }

  #extras(rule) {
    const tags = [];
    if (rule.cluster) tags.push(["cluster", this.#t("clusterShort")]);
    if (rule.fold) tags.push(["", this.#t("foldShort")]);
    if (rule.cost) tags.push(["", this.#t(`costShort.${rule.cost}`)]);
    if (rule.room) tags.push(["mono", rule.room]);
    for (const r of rule.role ?? []) tags.push(["", this.#t("onlyRole", { role: roleName(r, this.#language) })]);
    for (const [name, is] of Object.entries(rule.where ?? {})) tags.push(["mono", `${name} ${is}`]);
    const times = Object.entries(rule.multiply ?? {});
    for (const n of new Set(times.map(([, factor]) => factor))) {
      const roles = times.filter(([, factor]) => factor === n).map(([r]) => roleName(r, this.#language));
      tags.push(["", `${roles.join("+")} ×${n}`]);
    }
    const exempt = rule.exempt ?? {};
    if (exempt.roles) tags.push(["", this.#t("without", { list: exempt.roles.map((r) => roleName(r, this.#language)).join("+") })]);
    const n = (exempt.users?.length ?? 0) + (exempt.networks?.length ?? 0);
    if (n > 0) tags.push(["", this.#t("withoutMore", { n })]);
    this.#cells.except.replaceChildren(...tags.map(([kind, text]) => make("span", `tag ${kind}`, text)));
  }
}
