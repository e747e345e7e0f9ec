// The set that an operator is making out of the one in force. Each rule has a key of its own here, since names change.

import { diff, diffRule } from "./diff.js";
import { reshape } from "./reshape.js";
import { same, tidy, withValue } from "./rule.js";
import { copyOf } from "../older.js";

export class Draft {
  #base;
  #entries;
  #next = 0;

  /** `set` is the answer of GET /limits/rules. */
  constructor(set) {
    this.#take(set, set.rules ?? []);
  }

  #take(set, rules) {
    this.#base = { ...set, rules: (set.rules ?? []).map(tidy) };
    const known = new Map(this.#base.rules.map((r) => [r.name, r]));
    this.#entries = rules.map((r) => this.#entry(tidy(r), known.get(r.name)));
    const kept = new Set(rules.map((r) => r.name));
    for (const [i, rule] of this.#base.rules.entries()) {
      if (!kept.has(rule.name)) this.#entries.splice(i, 0, { ...this.#entry(rule, rule), removed: true });
    }
  }

  #entry(rule, was) {
    return { key: `r${this.#next++}`, rule, was: was ?? null, removed: false };
  }

  /** The set this draft started from. */
  get base() {
    return this.#base;
  }

  /** `[{key, rule, was, removed}]` in order; `was` is null for a new rule. */
  get entries() {
    return this.#entries;
  }

  entry(key) {
    return this.#entries.find((e) => e.key === key);
  }

  /** The rules as they would be published. */
  get rules() {
    return this.#live().map((e) => tidy(e.rule));
  }

  #live() {
    return this.#entries.filter((e) => !e.removed);
  }

  get dirty() {
    return this.#entries.some((e) => this.touched(e.key));
  }

  touched(key) {
    const { rule, was, removed } = this.entry(key);
    return removed || was === null || !same(tidy(rule), was);
  }

  /** The fields of a rule that differ from what is in force. */
  touchedFields(key) {
    const { rule, was } = this.entry(key);
    return was === null ? [] : [...diffRule(was, tidy(rule)).map((c) => c.field), ...(rule.name === was.name ? [] : ["name"])];
  }

  changes() {
    return diff(this.#base.rules, this.rules);
  }

  /** How many rules differ. */
  get changed() {
    return new Set(this.changes().map((c) => c.rule)).size;
  }

  /** Puts a value at a path of a rule; undefined takes it out. What can't stand beside it goes. */
  set(key, path, value) {
    const entry = this.entry(key);
    entry.rule = reshape(entry.rule, path, value);
  }

  /** Adds a rule and returns its key. */
  add() {
    const rule = { name: this.#freeName("new-rule"), action: ["danmaku"], scope: "user", rate: 10, burst: 20, shadow: true };
    const entry = this.#entry(rule, null);
    this.#entries.push(entry);
    return entry.key;
  }

  /** Copies a rule below itself, in shadow, and returns the copy's key. */
  duplicate(key) {
    const at = this.#entries.findIndex((e) => e.key === key);
    const rule = copyOf(this.#entries[at].rule);
    const entry = this.#entry({ ...rule, name: this.#freeName(`${rule.name}-copy`.slice(0, 60)), shadow: true }, null);
    this.#entries.splice(at + 1, 0, entry);
    return entry.key;
  }

  /** Marks a rule as removed; one that was never published is gone at once. */
  remove(key) {
    const entry = this.entry(key);
    if (entry.was === null) this.#entries = this.#entries.filter((e) => e !== entry);
    else entry.removed = true;
  }

  /** Takes one rule back to what is in force. */
  restore(key) {
    const entry = this.entry(key);
    if (entry.was === null) return this.remove(key);
    entry.removed = false;
    entry.rule = copyOf(entry.was);
  }

  /** Takes all back. */
  reset() {
    this.#take(this.#base, this.#base.rules);
  }

  /** Starts from these rules instead, on the same base: an older version's, or what a file says. */
  replace(rules) {
    this.#take(this.#base, rules);
  }

  /**
   * Puts this draft's changes on top of a set that somebody published meanwhile. What both changed stays as this draft
   * has it, and is returned: `[{rule, field, theirs, mine}]`.
   */
  rebase(set) {
    const { rules, conflicts } = merge(this.#base.rules, this.rules, (set.rules ?? []).map(tidy));
    this.#take(set, rules);
    return conflicts;
  }

  /** The key of the rule at an index of what was sent. */
  keyAt(index) {
    return this.#live()[index]?.key ?? null;
  }

  #freeName(wish) {
    const taken = new Set(this.#entries.map((e) => e.rule.name));
    let name = wish;
    for (let n = 2; taken.has(name); n++) name = `${wish}-${n}`;
    return name;
  }
}

/** Merges two lists of rules that both came from `base`; `mine` wins. */
export function merge(base, mine, theirs) {
  const named = (rules) => new Map(rules.map((r) => [r.name, r]));
  const [was, my, their] = [named(base), named(mine), named(theirs)];
  const conflicts = [];
  const rules = [];
  const put = (name) => {
    const merged = mergeRule(name, was.get(name), my.get(name), their.get(name), conflicts);
    if (merged) rules.push(merged);
  };
  for (const name of their.keys()) put(name);
  for (const name of my.keys()) if (!their.has(name)) put(name);
  for (const name of was.keys()) if (!their.has(name) && !my.has(name)) put(name);
  return { rules, conflicts };
}

function mergeRule(name, was, mine, theirs, conflicts) {
  if (same(mine, was)) return theirs;
  if (same(theirs, was) || same(mine, theirs)) return mine;
  if (!was || !mine || !theirs) {
    conflicts.push({ rule: name, theirs, mine });
    return mine;
  }
  let merged = theirs;
  for (const { field, after } of diffRule(was, mine)) {
    if (!same(theirs[field], was[field]) && !same(theirs[field], after)) conflicts.push({ rule: name, field, theirs: theirs[field], mine: after });
    merged = withValue(merged, field, after);
  }
  return merged;
}
