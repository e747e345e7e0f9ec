// The server's checks of a set, as far as they cost nothing here. The server's own answer has the last word.

import { parseDuration } from "./duration.js";
import { ACTIONS, LASTING, MAX, SCOPES, WINDOWS } from "./vocabulary.js";

const NAME = /^[a-z0-9_-]{1,64}$/;
const PREFIX = /^(\d{1,3}(\.\d{1,3}){3}\/\d{1,2}|[0-9a-f:.]*:[0-9a-f:.]*\/\d{1,3})$/i;

/** Every fault of the rules: `[{index, field, code, values}]`; `code` names the words. */
export function check(rules) {
  const faults = [];
  const names = new Set();
  rules.forEach((rule, index) => {
    const say = (field, code, values = {}) => faults.push({ index, field, code, values });
    checkWho(rule, names, say);
    checkNumbers(rule, say);
    checkRest(rule, say);
    names.add(rule.name);
  });
  return faults;
}

function checkWho(rule, names, say) {
  if (!NAME.test(rule.name ?? "")) say("name", "name");
  else if (names.has(rule.name)) say("name", "taken", { name: rule.name });
  const actions = rule.action ?? [];
  if (actions.length === 0) say("action", "someAction");
  for (const a of actions) {
    if (!ACTIONS.includes(a) && !/^api:./.test(a)) say("action", "action", { name: a });
  }
  if (!SCOPES.includes(rule.scope)) say("scope", "scope");
}

function checkNumbers(rule, say) {
  const { algorithm = "token_bucket", tiers = [] } = rule;
  if (rule.share) {
    if (!/^[1-9]\d?%$/.test(rule.share)) say("share", "range", { least: "1%", most: "99%" });
  } else if (tiers.length > 0) {
    if (algorithm !== "token_bucket") say("tiers", "tiersBucket");
    checkTiers(tiers, say);
  } else if (algorithm === "concurrency") {
    checkPer(rule.per, "per", say);
    whole(rule.burst, "burst", 1, (rule.action ?? []).some((a) => LASTING.includes(a)) ? MAX.burst : MAX.slots, say);
  } else if (WINDOWS.includes(algorithm)) {
    whole(rule.rate, "rate", 1, MAX.rate, say);
    checkPer(rule.per, "per", say);
  } else {
    checkLimit(rule, "", algorithm === "leaky_bucket" ? 1 : 0, say);
  }
  if (rule.degrade) checkLimit(rule.degrade, "degrade.", 0, say);
  if (rule.initial !== undefined) whole(rule.initial, "initial", 0, MAX.burst, say);
}

function checkTiers(tiers, say) {
  tiers.forEach((tier, i) => {
    const at = `tiers[${i}].`;
    checkLimit(tier, at, 0, say);
    if (i === tiers.length - 1) {
      if (tier.below !== undefined) say(`${at}below`, "lastTier");
    } else if (!whole(tier.below, `${at}below`, 10, Number.MAX_SAFE_INTEGER, say)) {
      return;
    } else if (i > 0 && tier.below <= tiers[i - 1].below) {
      say(`${at}below`, "tierOrder");
    }
  });
}

function checkLimit(limit, at, leastRate, say) {
  whole(limit.rate, `${at}rate`, leastRate, MAX.rate, say);
  whole(limit.burst, `${at}burst`, 1, MAX.burst, say);
  checkPer(limit.per, `${at}per`, say);
}

function checkPer(per, field, say) {
  if (per === undefined || per === "") return;
  const ms = parseDuration(per);
  if (ms === null) say(field, "duration");
  else if (ms < 1 || ms > MAX.perMs) say(field, "per");
}

function checkRest(rule, say) {
  if (rule.fold && rule.degrade) say("fold", "foldDegrade");
  for (const [role, n] of Object.entries(rule.multiply ?? {})) whole(n, `multiply.${role}`, 1, MAX.times, say);
  for (const [action, n] of Object.entries(rule.floor ?? {})) {
    if (!(rule.action ?? []).includes(action)) say(`floor.${action}`, "floorAction");
    else whole(n, `floor.${action}`, 0, leastBurst(rule) - 1, say);
  }
  (rule.exempt?.networks ?? []).forEach((text, i) => PREFIX.test(text) || say(`exempt.networks[${i}]`, "prefix", { text }));
  if (rule.cluster && rule.scope === "conn") say("cluster", "connCluster");
  if (rule.grace !== undefined && (parseDuration(rule.grace) === null || rule.on_outage !== "open")) say("grace", "grace");
}

function leastBurst(rule) {
  const bursts = rule.tiers?.length > 0 ? rule.tiers.map((t) => t.burst) : [WINDOWS.includes(rule.algorithm) ? rule.rate : rule.burst];
  return Math.min(...bursts.map((b) => b ?? 1));
}

function whole(value, field, least, most, say) {
  if (Number.isInteger(value) && value >= least && value <= most) return true;
  say(field, value === undefined ? "missing" : "range", { least, most });
  return false;
}
