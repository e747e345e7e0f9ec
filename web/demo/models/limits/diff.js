// What leads from one list of rules to another, by rule and field, as package rulebook tells it.

import { parseDuration } from "./duration.js";
import { same, tidy } from "./rule.js";

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

/** Whether a change lets less through (-1), more (1), or can't be told from its numbers (0). */
export function direction({ field, before, after }) {
  if (field === "per") return Math.sign((parseDuration(before ?? "1s") ?? 0) - (parseDuration(after ?? "1s") ?? 0));
  if (["rate", "burst"].includes(field) && typeof before === "number" && typeof after === "number") return Math.sign(after - before);
  if (field === "shadow") return after ? 1 : -1;
  if (field === undefined) return after === undefined ? 1 : -1;
  return 0;
}
