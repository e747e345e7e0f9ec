// What the rules decided over the last minutes, as rates a second, from counters that only grow until a node starts anew.

import { last } from "../older.js";

const COUNTER = "liveroom_limit_decisions_total";
const VERSION = "liveroom_rules_version";
const ROLLBACKS = "liveroom_rules_rollbacks_total";
/** Outcomes as the charts tell them apart. A rule that exempts lets through. */
const KIND = { allow: "allow", exempt: "allow", degrade: "degrade", reject: "reject", shadow_degrade: "shadow", shadow_reject: "shadow" };
const NOTHING = Object.freeze({ allow: 0, degrade: 0, reject: 0, shadow: 0 });

/** A longer silence than this many milliseconds breaks a curve. */
export const GAP_MS = 12_000;

export class Decisions {
  #window;
  #totals = null;
  #at = 0;
  #version = null;
  #guarded = 0;
  /** Keys are "all", "action:" and an action, "rule:" and a name. Points are `{at, ms, broken, allow, degrade, reject, shadow}`: rates over the `ms` before `at`. */
  #series = new Map();
  #marks = [];
  #rules = new Map();

  constructor(windowMs = 600_000) {
    this.#window = windowMs;
  }

  /** Takes what /metrics said at `now`, in milliseconds. Returns whether the version of the rules changed. */
  take(metrics, now) {
    const totals = new Map();
    for (const { labels, value } of metrics.samples(COUNTER)) {
      if (KIND[labels.outcome]) totals.set(`${labels.rule}\n${labels.scope}\n${labels.action}\n${labels.outcome}`, value);
    }
    const passed = now - this.#at;
    if (this.#totals && passed > 0) this.#add(this.#growth(totals), passed, now);
    this.#totals = totals;
    this.#at = now;
    return this.#mark(metrics.sum(VERSION), metrics.sum(ROLLBACKS, { by: "guard" }), now);
  }

  /** How much each counter grew; one that fell, or was not there before, began at zero. */
  #growth(totals) {
    const grown = [];
    for (const [id, value] of totals) {
      const before = this.#totals.get(id) ?? 0;
      const [rule, scope, action, outcome] = id.split("\n");
      grown.push({ rule, scope, action, kind: KIND[outcome], n: value < before ? value : value - before });
    }
    return grown;
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
    this.#forget(now);
  }

  #push(key, sum, passed, now) {
    const quiet = Object.values(sum).every((n) => n === 0);
    if (!this.#series.has(key)) {
      if (quiet && key !== "all") return;
      this.#series.set(key, []);
    }
    const point = { at: now, ms: passed, broken: passed > GAP_MS };
    for (const [kind, n] of Object.entries(sum)) point[kind] = (n * 1000) / passed;
    this.#series.get(key).push(point);
  }

  #forget(now) {
    for (const [key, points] of this.#series) {
      const from = points.findIndex((p) => p.at >= now - this.#window);
      if (from !== 0) points.splice(0, from < 0 ? points.length : from);
      if (points.every((p) => p.allow + p.degrade + p.reject + p.shadow === 0) && key !== "all") this.#series.delete(key);
    }
    this.#marks = this.#marks.filter((m) => m.at >= now - this.#window);
  }

  #mark(version, guarded, now) {
    const changed = this.#version !== null && version !== this.#version;
    if (changed) this.#marks.push({ at: now, version, by: guarded > this.#guarded ? "guard" : "somebody" });
    this.#version = version;
    this.#guarded = guarded;
    return changed;
  }

  get now() {
    return this.#at;
  }

  get windowMs() {
    return this.#window;
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
  sum(key, ms = this.#window) {
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
