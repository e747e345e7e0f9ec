// What leads from one list of rules to another, by rule and field, as package rulebook tells it.

import { parseDuration } from "./duration.js";
import { same, tidy } from "./rule.js";
import { last } from "../older.js";

/** `[{rule, field, before, after}]`; without `field` where the whole rule came (no before) or went (no after). */
export function diff(before, after) {
  const old = byName(before);
  const now = byName(after);
  const names = [...new Set([...old.keys(), ...now.keys()])].sort();
  return names.flatMap((name) => {
    const was = old.get(name);
    const is = now.get(name);
    if (!was) return [{ rule: name, after: is }];
    if (!is) return [{ rule: name, before: was }];
    return diffRule(was, is).map((change) => ({ rule: name, ...change }));
  });
}

export function diffRule(was, is) {
  const fields = [...new Set([...Object.keys(was), ...Object.keys(is)])].filter((f) => f !== "name").sort();
  return fields.filter((f) => !same(was[f], is[f])).map((field) => ({ field, before: was[field], after: is[field] }));
}

function byName(rules) {
  return new Map(rules.map((rule) => [rule.name ?? "", tidy(rule)]));
}

/**
 * A change of a field that has parts, as changes of those parts: `degrade.rate`, `tiers[1].burst`, `exempt.users`. Lists
 * of another length, and parts that came or went whole, stay one change.
 */
export function detail(change) {
  const { field, before, after } = change;
  if (field === undefined || !parted(before) || !parted(after)) return [change];
  const list = Array.isArray(before);
  if (list !== Array.isArray(after) || (list && before.length !== after.length)) return [change];
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return keys.filter((k) => !same(before[k], after[k]))
    .flatMap((k) => detail({ ...change, field: list ? `${field}[${k}]` : `${field}.${k}`, before: before[k], after: after[k] }));
}

function parted(value) {
  return value !== null && typeof value === "object" && !(Array.isArray(value) && value.some((v) => typeof v !== "object"));
}

/** Whether a change lets less through (-1), more (1), or can't be told from its numbers (0). */
export function direction({ field: path, before, after }) {
  const field = path === undefined ? undefined : last(path.split("."));
  if (field === "per") return Math.sign((parseDuration(before ?? "1s") ?? 0) - (parseDuration(after ?? "1s") ?? 0));
  if (["rate", "burst"].includes(field) && typeof before === "number" && typeof after === "number") return Math.sign(after - before);
  if (field === "shadow") return after ? 1 : -1;
  if (field === undefined) return after === undefined ? 1 : -1;
  return 0;
}
