// What the host's desk shows, read from GET /api/v1/rooms/{room}.

/** A bucket below this share of its burst holds messages back, or is about to. */
const LOW = 0.15;

/** `[{rule, action, level, burst, perSecond, share, low}]`, the emptiest first. */
export function readQuota(body) {
  return list(body?.quota)
    .map((q) => {
      const burst = Math.max(0, number(q.burst));
      const level = Math.min(burst, Math.max(0, number(q.level)));
      const share = burst > 0 ? level / burst : 0;
      return { rule: String(q.rule ?? ""), action: String(q.action ?? ""), level, burst, perSecond: number(q.per_second), share, low: share < LOW };
    })
    .sort((a, b) => a.share - b.share || a.rule.localeCompare(b.rule));
}

/** `[{user, action, answer, count, ageMs}]`, the newest first. */
export function readRefusals(body) {
  return list(body?.refusals)
    .map((r) => ({
      user: typeof r.user === "object" && r.user !== null ? r.user : { id: String(r.user ?? ""), name: r.name },
      action: String(r.action ?? ""),
      answer: { code: r.code, reason: r.reason, scope: r.scope, rule: r.rule },
      count: Math.max(1, number(r.count)),
      ageMs: number(r.age_ms),
    }))
    .sort((a, b) => a.ageMs - b.ageMs);
}

function list(value) {
  return Array.isArray(value) ? value.filter((v) => v !== null && typeof v === "object") : [];
}

function number(value) {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
