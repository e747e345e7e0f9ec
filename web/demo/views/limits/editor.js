// All of one rule: opens below its row.

import { ACTIONS, ALGORITHMS, COSTS, OUTAGES, ROLES, SCOPES, WINDOWS } from "../../models/limits/vocabulary.js";
import { routesOf, withRoutes } from "../../models/limits/input.js";
import { controlFor } from "../../models/limits/faults.js";
import { actionName, roleName, sentence } from "../../models/limits/sentence.js";
import { make, named } from "../dom.js";
import { button, chips, field, select, showFaults, textInput, toggle } from "./controls.js";
import { last } from "../../models/older.js";


export class Editor {
  element = make("div", "editor");
  #language;
  #steps;
  #controls = [];
  #says = make("p", "says");
  #rule = null;
  #others = make("p", "fault");

  /** `steps`: `{edit(path, value), duplicate(), remove(), restore()}`. */
  constructor(language, steps) {
    this.#language = language;
    this.#steps = steps;
  }

  /** Shows the rule; controls are built anew only when their choice changes. */
  show({ rule, was }, faults) {
    const shape = shapeOf(rule);
    if (this.#rule === null || shapeOf(this.#rule) !== shape) this.#build(rule, was);
    this.#rule = rule;
    for (const control of this.#controls) control.show(rule);
    const paths = this.#controls.map((c) => c.path);
    const placed = faults.map((f) => ({ path: controlFor(f.field, paths), text: f.text }));
    showFaults(this.#controls, placed);
    const lost = placed.filter((f) => f.path === "").map((f) => f.text);
    this.#others.textContent = lost.join(" · ");
    this.#others.hidden = lost.length === 0;
    this.#says.hidden = faults.length > 0;
    if (faults.length === 0) this.#says.textContent = sentence(rule, this.#language);
  }

  focus(path = "name") {
    const paths = this.#controls.map((c) => c.path);
    const control = this.#controls.find((c) => c.path === controlFor(path, paths)) ?? this.#controls[0];
    control?.input.focus();
  }

  #t(key, values) {
    return this.#language.text(`limits.${key}`, values);
  }

  #edit = (path, value) => {
    this.#steps.edit(path, value);
  };

  #add(control) {
    this.#controls.push(control);
    return control;
  }

  #build(rule, was) {
    const focused = this.element.contains(document.activeElement) ? document.activeElement.dataset.path : null;
    this.#controls = [];
    this.element.replaceChildren(this.#says, this.#others, this.#who(), this.#amount(rule), this.#beyond(rule), this.#except(rule), this.#cluster(rule), this.#foot(was));
    if (focused) this.focus(focused);
  }

  #group(title, ...content) {
    const group = make("fieldset", "knobs");
    group.append(make("legend", "", this.#t(title)), ...content);
    return group;
  }

  #text(path, title, options = {}) {
    const control = this.#add(textInput(path, { onEdit: this.#edit, ...options }));
    return field(this.#t(title), control.input, options);
  }

  #pick(path, title, options) {
    const control = this.#add(select(path, options, { onEdit: this.#edit }));
    return field(this.#t(title), control.input);
  }

  #chips(path, title, options) {
    const control = this.#add(chips(path, options, { onEdit: this.#edit, label: this.#t(title) }));
    const knob = make("div", "knob wide");
    knob.append(make("span", "name", this.#t(title)), control.element);
    return knob;
  }

  /** The routes of an API are actions too, of which there is no list here. */
  #routes() {
    const control = this.#add(textInput("routes", { className: "mono", placeholder: "GET /rooms/{room}", onEdit: () => this.#edit("action", withRoutes(this.#rule.action, control.input.value)) }));
    control.show = (rule) => {
      if (document.activeElement !== control.input) control.input.value = routesOf(rule.action);
    };
    return field(this.#t("routes"), control.input);
  }

  #who() {
    const actions = ACTIONS.map((a) => [a, actionName(a, this.#language)]);
    const roles = ROLES.map((r) => [r, roleName(r, this.#language)]);
    return this.#group("groupWho",
      this.#text("name", "name", { className: "mono", hint: this.#t("nameHint") }),
      this.#pick("scope", "scope", SCOPES.map((s) => [s, this.#t(`scopeOf.${s}`)])),
      this.#chips("action", "action", actions),
      this.#routes(),
      this.#text("room", "room", { className: "mono", placeholder: this.#t("everyRoom"), hint: this.#t("roomHint") }),
      this.#text("priority", "priority", { kind: "number", placeholder: "0", hint: this.#t("priorityHint") }),
      this.#chips("role", "roles", roles));
  }

  #amount(rule) {
    const algorithm = rule.algorithm ?? "token_bucket";
    const knobs = [this.#pick("algorithm", "algorithm", ALGORITHMS.map((a) => [a, this.#t(`algorithmOf.${a}`)]))];
    if (rule.tiers?.length > 0) knobs.push(...this.#tiers(rule.tiers));
    else {
      if (algorithm !== "concurrency") knobs.push(this.#text("rate", "rate", { kind: "number" }));
      knobs.push(this.#text("per", algorithm === "concurrency" ? "hold" : "per", { placeholder: "1s" }));
      if (!WINDOWS.includes(algorithm)) knobs.push(this.#text("burst", algorithm === "concurrency" ? "slots" : "burst", { kind: "number" }));
      if (algorithm === "token_bucket") {
        knobs.push(this.#text("initial", "initial", { kind: "number", placeholder: this.#t("full") }));
        knobs.push(this.#line(button(this.#t("addTiers"), "link", () => this.#edit("tiers", firstTiers(rule)))));
      }
    }
    knobs.push(this.#pick("cost", "cost", COSTS.map((c) => [c, this.#t(`costOf.${c}`)])));
    return this.#group("groupAmount", ...knobs);
  }

  #tiers(tiers) {
    const list = make("div", "tiers");
    list.dataset.path = "tiers";
    list.tabIndex = -1;
    this.#add({ path: "tiers", input: list, element: list, show: () => {} });
    tiers.forEach((_, i) => {
      const line = make("div", "tier");
      const last = i === tiers.length - 1;
      if (last) line.append(make("p", "knob above", this.#t("above")));
      else line.append(this.#text(`tiers[${i}].below`, "below", { kind: "number" }));
      line.append(this.#text(`tiers[${i}].rate`, "rate", { kind: "number" }),
        this.#text(`tiers[${i}].per`, "per", { placeholder: "1s" }), this.#text(`tiers[${i}].burst`, "burst", { kind: "number" }),
        button(this.#t("removeTier"), "link", () => this.#edit("tiers", withoutTier(this.#rule.tiers, i))));
      list.append(line);
    });
    list.append(button(this.#t("addTier"), "link", () => this.#edit("tiers", oneMoreTier(this.#rule.tiers))));
    const knob = make("div", "knob wide");
    knob.append(list);
    return [knob];
  }

  #line(...content) {
    const line = make("div", "knob line");
    line.append(...content);
    return line;
  }

  #beyond(rule) {
    const t = (key) => this.#t(key);
    const knobs = [];
    const degrade = this.#add(toggle("degrade", t("degradeOn"), { onEdit: (_, on) => this.#edit("degrade", on ? { rate: Math.max(1, rule.rate ?? 10), burst: rule.burst ?? 20 } : undefined) }));
    degrade.show = (r) => { degrade.input.checked = r.degrade !== undefined; };
    const fold = this.#add(toggle("fold", t("fold"), { onEdit: this.#edit }));
    const shadow = this.#add(toggle("shadow", t("shadowOn"), { onEdit: this.#edit }));
    const switches = [degrade, fold, shadow].map((c) => {
      const knob = make("div", "knob");
      knob.append(c.element);
      return knob;
    });
    knobs.push(...switches);
    if (rule.degrade) {
      knobs.push(this.#text("degrade.rate", "degradeRate", { kind: "number" }), this.#text("degrade.per", "per", { placeholder: "1s" }),
        this.#text("degrade.burst", "degradeBurst", { kind: "number" }));
    }
    if ((rule.action ?? []).length > 1) {
      for (const a of rule.action.filter((x) => !x.startsWith("api:"))) knobs.push(this.#named(`floor.${a}`, this.#t("floorOf", { action: actionName(a, this.#language) }), "0"));
    }
    return this.#group("groupBeyond", ...knobs);
  }

  #named(path, label, placeholder) {
    const control = this.#add(textInput(path, { kind: "number", onEdit: this.#edit, placeholder }));
    return field(label, control.input);
  }

  #except(rule) {
    const roles = ROLES.map((r) => [r, roleName(r, this.#language)]);
    const times = [...new Set(["host", "moderator", ...Object.keys(rule.multiply ?? {})])].map((r) => this.#named(`multiply.${r}`, this.#t("timesOf", { role: roleName(r, this.#language) }), "1"));
    return this.#group("groupExcept", this.#chips("exempt.roles", "exemptRoles", roles),
      this.#text("exempt.users", "exemptUsers", { kind: "list", className: "mono" }),
      this.#text("exempt.networks", "exemptNetworks", { kind: "list", className: "mono", placeholder: "10.0.0.0/8" }), ...times);
  }

  #cluster(rule) {
    const cluster = this.#add(toggle("cluster", this.#t("clusterOn"), { onEdit: this.#edit }));
    const knob = make("div", "knob");
    knob.append(cluster.element);
    const knobs = [knob, this.#pick("on_outage", "onOutage", OUTAGES.map((o) => [o, this.#t(`outageOf.${o}`)]))];
    if (rule.on_outage === "open") knobs.push(this.#text("grace", "grace", { placeholder: "30s" }));
    return this.#group("groupCluster", ...knobs);
  }

  #foot(was) {
    const foot = make("div", "foot");
    foot.append(button(this.#t("duplicate"), "button quiet small", this.#steps.duplicate));
    if (was) foot.append(button(this.#t("restore"), "button quiet small", this.#steps.restore));
    foot.append(button(this.#t("remove"), "button quiet small bad", this.#steps.remove));
    return foot;
  }
}

/** What decides which controls there are. */
function shapeOf(rule) {
  return [rule.algorithm ?? "", rule.tiers?.length ?? 0, rule.degrade !== undefined, rule.on_outage ?? "", (rule.action ?? []).filter((a) => !a.startsWith("api:")).join()].join("|");
}

function firstTiers({ rate = 10, per, burst = 20 }) {
  return [{ below: 1000, rate, per, burst }, { rate: Math.ceil(rate / 2), per, burst }];
}

function oneMoreTier(tiers) {
  const top = last(tiers);
  const below = (tiers[tiers.length - 2]?.below ?? 100) * 10;
  return [...tiers.slice(0, -1), { ...top, below }, { ...top }];
}

function withoutTier(tiers, i) {
  const rest = tiers.filter((_, at) => at !== i).map((t) => ({ ...t }));
  if (rest.length > 0) delete last(rest).below;
  return rest.length > 0 ? rest : undefined;
}
