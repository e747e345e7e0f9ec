// One rule as the editor holds it: lists are lists, and what says nothing is left out.

import { formatDuration, parseDuration } from "./duration.js";
import { copyOf } from "../older.js";

const LISTS = ["role"];
const EXEMPT = ["roles", "users", "networks"];
const ORDER = ["name", "action", "scope", "room", "role", "where", "priority", "algorithm", "rate", "per", "burst", "share", "sessions", "initial", "cost", "fold",
  "degrade", "floor", "tiers", "multiply", "exempt", "shadow", "cluster", "on_outage", "grace"];

/** A rule in its one form, whatever form it came in. The answer shares nothing with `raw`. */
export function tidy(raw) {
  const rule = copyOf(raw);
  rule.action = list(rule.action);
  for (const key of LISTS) rule[key] = list(rule[key]);
  rule.exempt = Object.fromEntries(EXEMPT.map((k) => [k, list(rule.exempt?.[k])]));
  rule.tiers = (rule.tiers ?? []).map(tidyLimit);
  if (rule.degrade) rule.degrade = tidyLimit(rule.degrade);
  Object.assign(rule, tidyLimit(rule));
  if (rule.tiers.length > 0 || rule.share || rule.algorithm === "concurrency") drop(rule, "rate", (v) => !v);
  if (rule.tiers.length > 0 || rule.share) drop(rule, "burst", (v) => !v);
  if (rule.algorithm === "token_bucket") delete rule.algorithm;
  if (rule.cost === "1") delete rule.cost;
  if (rule.on_outage === "share") delete rule.on_outage;
  return ordered(prune(rule));
}

function tidyLimit(limit) {
  const out = { ...limit };
  const ms = parseDuration(limit.per);
  if (ms !== null) out.per = ms === 1000 || ms === 0 ? undefined : formatDuration(ms);
  if (out.below === 0) delete out.below;
  return out;
}

function drop(rule, key, when) {
  if (when(rule[key])) delete rule[key];
}

function list(value) {
  if (value === undefined || value === null || value === "") return [];
  return Array.isArray(value) ? [...value] : [value];
}

/** Leaves out what is empty: null, "", false, [] and {}. Numbers stay, also 0, priority alone excepted. */
function prune(value) {
  const out = {};
  for (const [key, v] of Object.entries(value)) {
    const kept = v && typeof v === "object" && !Array.isArray(v) ? prune(v) : v;
    const empty = kept === undefined || kept === null || kept === "" || kept === false || (key === "priority" && kept === 0)
      || (Array.isArray(kept) && kept.length === 0) || (kept && typeof kept === "object" && !Array.isArray(kept) && Object.keys(kept).length === 0);
    if (!empty) out[key] = Array.isArray(kept) ? kept.map((e) => (e && typeof e === "object" ? prune(e) : e)) : kept;
  }
  return out;
}

function ordered(rule) {
  const keys = Object.keys(rule).sort((a, b) => place(a) - place(b));
  return Object.fromEntries(keys.map((k) => [k, rule[k]]));
}

function place(key) {
  const at = ORDER.indexOf(key);
  return at < 0 ? ORDER.length : at;
}

/** Whether two values say the same, whatever the order of their keys. */
export function same(a, b) {
  return stable(a) === stable(b);
}

function stable(value) {
  if (value && typeof value === "object" && !Array.isArray(value)) {
    return `{${Object.keys(value).filter((k) => value[k] !== undefined).sort().map((k) => `${JSON.stringify(k)}:${stable(value[k])}`).join(",")}}`;
  }
  if (Array.isArray(value)) return `[${value.map(stable).join(",")}]`;
  return JSON.stringify(value) ?? "null";
}

/** The value at a path like `degrade.rate` or `tiers[1].below`. */
export function valueAt(rule, path) {
  return steps(path).reduce((v, step) => v?.[step], rule);
}

/** A copy of `rule` with the value at `path` replaced, or taken out for undefined. */
export function withValue(rule, path, value) {
  const out = copyOf(rule);
  const way = steps(path);
  const last = way.pop();
  let at = out;
  for (const [i, step] of way.entries()) {
    at[step] ??= typeof (way[i + 1] ?? last) === "number" ? [] : {};
    at = at[step];
  }
  if (value !== undefined) at[last] = value;
  else if (Array.isArray(at)) at.splice(last, 1);
  else delete at[last];
  return out;
}

function steps(path) {
  return path.split(/[.[\]]+/).filter(Boolean).map((s) => (/^\d+$/.test(s) ? Number(s) : s));
}
