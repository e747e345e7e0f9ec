// A rule in one sentence, for those who do not read tables.

import { formatDuration, parseDuration } from "./duration.js";
import { WINDOWS } from "./vocabulary.js";

/** The sentence of a rule that has no faults. */
export function sentence(rule, language) {
  const t = (key, values) => language.text(`limits.say.${key}`, values);
  const what = join(rule.action.map((a) => actionName(a, language)), language);
  const who = t(`who.${rule.scope}`);
  const parts = [t("start", { who, what, how: how(rule, language) })];
  if (rule.room) parts.push(t("room", { room: rule.room }));
  if (rule.role?.length > 0) parts.push(t("role", { role: join(rule.role.map((r) => roleName(r, language)), language) }));
  const where = Object.entries(rule.where ?? {}).map(([name, is]) => `${name} ${is}`);
  if (where.length > 0) parts.push(t("where", { list: join(where, language) }));
  const times = Object.entries(rule.multiply ?? {});
  if (times.length > 0) parts.push(t("times", { list: join(times.map(([r, n]) => `${roleName(r, language)} ×${n}`), language) }));
  const exempt = [...(rule.exempt?.roles ?? []).map((r) => roleName(r, language)), ...(rule.exempt?.users ?? []), ...(rule.exempt?.networks ?? [])];
  if (exempt.length > 0) parts.push(t("exempt", { list: join(exempt, language) }));
  parts.push(beyond(rule, t, language));
  if (rule.cluster) parts.push(t("cluster"));
  return parts.join(language.text("list.sentence"));
}

function how(rule, language) {
  const t = (key, values) => language.text(`limits.say.${key}`, values);
  const pace = ({ rate, per, burst }) => t("pace", { rate, per: perText(per, language), burst });
  if (rule.share) return t("share", { share: rule.share, n: rule.sessions ?? 1 });
  if (rule.tiers?.length > 0) {
    return rule.tiers.map((tier) => (tier.below ? t("tier", { n: tier.below, pace: pace(tier) }) : t("lastTier", { pace: pace(tier) }))).join(t("comma"));
  }
  if (rule.algorithm === "concurrency") return t("slots", { n: rule.burst });
  if (WINDOWS.includes(rule.algorithm)) return t("window", { rate: rule.rate, per: perText(rule.per, language) });
  return pace(rule);
}

/** "s", or "30 s". */
export function perText(per, language) {
  const ms = parseDuration(per) ?? 1000;
  if (ms === 1000) return language.text("limits.second");
  if (ms === 60_000) return language.text("limits.minute");
  return language.text("list.perGap") + (ms % 1000 === 0 && ms < 120_000 ? language.text("time.s", { n: ms / 1000 }) : formatDuration(ms));
}

function beyond(rule, t, language) {
  if (rule.shadow) return t("shadow");
  if (rule.fold) return t("fold");
  const d = rule.degrade;
  return d ? t("degrade", { rate: d.rate, per: perText(d.per, language), burst: d.burst }) : t("reject");
}

export function actionName(action, language) {
  const key = `limits.action.${action}`;
  return language.has(key) ? language.text(key) : action;
}

export function roleName(role, language) {
  const key = `role.${role}`;
  return language.has(key) ? language.text(key) : role;
}

function join(items, language) {
  return items.join(language.text("list.comma"));
}
