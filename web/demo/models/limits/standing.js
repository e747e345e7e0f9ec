// Why a request would pass or not: the answer of GET /limits/explain.

/** `{rules, verdict, waitMs}`; `verdict` is "none", "pass", "wait" or "never", of the rules that decide. */
export function readStandings(body) {
  const rules = (Array.isArray(body?.rules) ? body.rules : []).map((r) => ({
    rule: r.rule,
    scope: r.scope,
    algorithm: r.algorithm,
    why: r.why,
    asked: r.why === "applies" || r.why === "shadow",
    level: r.level ?? 0,
    burst: r.burst ?? 0,
    share: r.burst > 0 ? Math.min(1, Math.max(0, r.level / r.burst)) : 0,
    waitMs: r.retry_after_ms ?? 0,
  }));
  const deciding = rules.filter((r) => r.why === "applies");
  const waitMs = Math.max(0, ...deciding.map((r) => r.waitMs));
  const verdict = deciding.length === 0 ? "none" : deciding.some((r) => r.waitMs < 0) ? "never" : waitMs > 0 ? "wait" : "pass";
  return { rules, verdict, waitMs };
}

/** What of a question names the subject of a reset: user and room, one of them, an address or a key. */
export function subjectOf({ room, user, addr, key }) {
  if (user || room) return { ...(user && { user }), ...(room && { room }) };
  if (addr) return { addr };
  return key ? { key } : null;
}
