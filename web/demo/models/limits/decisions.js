// What the rules of all nodes decided over the last minutes, as rates a second: the answer of GET /limits/traffic, made
// ready to be drawn.

import { last } from "../older.js";

/** Outcomes as the charts tell them apart. A rule that exempts lets through. */
const KIND = { allow: "allow", exempt: "allow", degrade: "degrade", reject: "reject", shadow_degrade: "shadow", shadow_reject: "shadow" };
const NOTHING = Object.freeze({ allow: 0, degrade: 0, reject: 0, shadow: 0 });

export class Decisions {
  #windowMs = 600_000;
  #at = 0;
  #version = null;
  /** Keys are "all", "action:" and an action, "rule:" and a name. Points are `{at, ms, allow, degrade, reject, shadow}`: rates over the `ms` before `at`. */
  #series = new Map();
  #marks = [];
  #rules = new Map();
  #figures = new Map();

  /** How many nodes are in it. */
  nodes = 0;
  /** Who was refused most: `[{user, refused, degraded, room, action, rule}]`. */
  top = [];

  /** Takes an answer. Returns whether a set of rules came into force since the one before. */
  take({ at, step_ms: ms, nodes, series, figures, changes, top }) {
    this.#at = at;
    this.nodes = nodes;
    this.top = top;
    this.#series.clear();
    const steps = figures.sessions?.length ?? 0;
    for (let ago = steps - 1; ago >= 0; ago--) {
      const grown = series.map(({ n, outcome, ...of }) => ({ ...of, kind: KIND[outcome], n: n[n.length - 1 - ago] ?? 0 }));
      this.#add(grown.filter((g) => g.kind), ms, at - ago * ms);
    }
    for (const [key, points] of this.#series) {
      if (key !== "all" && points.every((p) => total(p) === 0)) this.#series.delete(key);
    }
    this.#figures = new Map(Object.entries(figures).map(([name, n]) => [name, name === "sessions" ? n : n.map((v) => (v * 1000) / ms)]));
    this.#marks = changes.map(({ age_ms: age, version, kind }) => ({ at: at - age, version, by: kind === "guard" ? "guard" : "somebody" }));
    const before = this.#version;
    this.#version = last(changes)?.version ?? before ?? 0;
    return before !== null && before !== this.#version;
  }

  /** A figure's values, oldest first: sessions as they were, all else a second. */
  figure(name) {
    return this.#figures.get(name) ?? [];
  }

  #add(grown, passed, now) {
    const rules = new Map();
    const actions = new Map();
    for (const { rule, scope, action, kind, n } of grown) {
      const sum = rules.get(rule) ?? { ...NOTHING };
      sum[kind] += n;
      rules.set(rule, sum);
      this.#rules.set(rule, { rule, scope });
      const of = actions.get(action) ?? new Map();
      const one = of.get(rule) ?? { ...NOTHING };
      one[kind] += n;
      of.set(rule, one);
      actions.set(action, of);
    }
    const all = { ...NOTHING };
    for (const [rule, sum] of rules) this.#push(`rule:${rule}`, sum, passed, now);
    for (const [action, of] of actions) {
      const sum = requests([...of.values()]);
      this.#push(`action:${action}`, sum, passed, now);
      if (action !== "frame") for (const kind of Object.keys(all)) all[kind] += sum[kind];
    }
    this.#push("all", all, passed, now);
  }

  #push(key, sum, passed, now) {
    if (!this.#series.has(key)) this.#series.set(key, []);
    const point = { at: now, ms: passed };
    for (const [kind, n] of Object.entries(sum)) point[kind] = (n * 1000) / passed;
    this.#series.get(key).push(point);
  }

  get now() {
    return this.#at;
  }

  get windowMs() {
    return this.#windowMs;
  }

  /** When the version of the rules changed: `[{at, version, by}]`, by somebody or the guard. */
  get marks() {
    return this.#marks;
  }

  points(key) {
    return this.#series.get(key) ?? [];
  }

  /** The newest rates of a series. */
  last(key) {
    return last(this.points(key)) ?? NOTHING;
  }

  /** The actions that anybody tried, busiest first. */
  actions() {
    return this.#keys("action:").map(({ name }) => name);
  }

  /** The rules with traffic, most refusals first: `[{rule, scope, allow, degrade, reject, shadow}]`, in requests over the whole time. */
  rules() {
    return this.#keys("rule:").map(({ name, sum }) => ({ ...this.#rules.get(name), ...sum }))
      .sort((a, b) => b.reject - a.reject || b.degrade - a.degrade || b.shadow - a.shadow || b.allow - a.allow);
  }

  #keys(prefix) {
    return [...this.#series.keys()].filter((k) => k.startsWith(prefix))
      .map((key) => ({ name: key.slice(prefix.length), sum: this.sum(key) }))
      .sort((a, b) => total(b.sum) - total(a.sum));
  }

  /** How many requests a series holds, over its whole window or its last `ms`. */
  sum(key, ms = this.#windowMs) {
    const sum = { ...NOTHING };
    for (const point of this.points(key)) {
      if (point.at <= this.#at - ms) continue;
      for (const kind of Object.keys(sum)) sum[kind] += (point[kind] * point.ms) / 1000;
    }
    return sum;
  }
}

function total({ allow, degrade, reject, shadow }) {
  return allow + degrade + reject + shadow;
}

/**
 * Requests out of what each rule counted: one request is counted by every rule it passes, so the rule that saw most
 * of them tells how many there were.
 */
function requests(sums) {
  const most = (of) => Math.max(0, ...sums.map(of));
  const passed = most((s) => s.allow + s.degrade + s.shadow);
  const degrade = most((s) => s.degrade);
  return { allow: passed - degrade, degrade, reject: most((s) => s.reject), shadow: most((s) => s.shadow) };
}
