// What a change of one field means for the others, so that a choice does not leave behind what it rules out.

import { withValue } from "./rule.js";
import { WINDOWS } from "./vocabulary.js";
import { last } from "../older.js";

const LIMIT = ["rate", "per", "burst"];

/** The rule with `value` at `path`, and without what can't stand beside it. */
export function reshape(rule, path, value) {
  const out = withValue(rule, path, value);
  if (path === "tiers") return value?.length > 0 ? without(out, LIMIT) : { ...out, ...limitOf(last(rule.tiers ?? []) ?? rule) };
  if (path === "algorithm") return forAlgorithm(out, value);
  if (path === "action" && out.floor) out.floor = Object.fromEntries(Object.entries(out.floor).filter(([a]) => value.includes(a)));
  if (path === "on_outage" && value !== "open") return without(out, ["grace"]);
  return out;
}

function forAlgorithm(rule, algorithm) {
  let out = { ...rule };
  if (algorithm !== "token_bucket") {
    if (out.tiers?.length > 0) Object.assign(out, limitOf(last(out.tiers)));
    out = without(out, ["tiers", "initial"]);
  }
  if (WINDOWS.includes(algorithm)) out = without(out, ["burst"]);
  else if (algorithm === "concurrency") out = without(out, ["rate", "multiply"]);
  if (algorithm !== "concurrency") out.rate ??= 10;
  if (!WINDOWS.includes(algorithm) && !(out.tiers?.length > 0)) out.burst ??= Math.max(1, out.rate ?? 10);
  return out;
}

function limitOf({ rate, per, burst }) {
  return { rate, ...(per && { per }), burst };
}

function without(rule, keys) {
  return Object.fromEntries(Object.entries(rule).filter(([k]) => !keys.includes(k)));
}
