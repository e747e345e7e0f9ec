// What a proposed set would have done to the last minutes: the report of POST /limits/preview, made ready to be drawn.

const KINDS = ["refused", "degraded"];

/** Less traffic than this says nothing about anybody else's. */
export const FEW_USERS = 20;

/**
 * `{seconds, messages, users, sampled, lines, newly, rules, actions, unjudged, override, reasons, warnings}`, or null for
 * what is no report. Each of `lines`, and of a rule's or action's, is `{kind, of, today, proposed, change}` with shares
 * `{share, low, high, count}`; `kind` is refused or degraded, `of` messages or users.
 */
export function readReport(body) {
  if (!body?.today || !body?.proposed) return null;
  const verdict = body.verdict ?? {};
  return {
    seconds: count(body.seconds),
    messages: count(body.messages),
    users: count(body.users),
    sampled: body.sampled_share ?? 1,
    few: count(body.sampled_users) < FEW_USERS,
    lines: linesOf(body),
    newly: proportion(body.newly_refused_users),
    rules: (body.rules ?? []).map(named),
    actions: (body.actions ?? []).map(named),
    unjudged: body.unjudged_rules ?? [],
    override: verdict.override === true,
    reasons: verdict.reasons ?? [],
    warnings: (verdict.warnings ?? []).filter((w) => w.code !== "little_traffic"),
  };
}

function named(line) {
  return { name: line.name, scope: line.scope ?? "", lines: linesOf(line) };
}

function linesOf({ today, proposed }) {
  return ["messages", "users"].flatMap((of) => KINDS.map((kind) => {
    const [a, b] = [proportion(today?.[kind]?.[of]), proportion(proposed?.[kind]?.[of])];
    return { kind, of, today: a, proposed: b, change: changeOf(a, b) };
  }));
}

/** "more" or "less" where the difference is beyond what the sample leaves open, else "same". */
function changeOf(today, proposed) {
  if (proposed.low > today.high || (proposed.exact && today.exact && proposed.share > today.share)) return "more";
  if (proposed.high < today.low || (proposed.exact && today.exact && proposed.share < today.share)) return "less";
  return "same";
}

function proportion(p) {
  const share = unit(p?.share);
  const low = Math.min(share, unit(p?.low ?? share));
  const high = Math.max(share, unit(p?.high ?? share));
  return { share, low, high, count: count(p?.count), error: Math.max(high - share, share - low), exact: low === high };
}

function unit(value) {
  return typeof value === "number" && Number.isFinite(value) ? Math.min(1, Math.max(0, value)) : 0;
}

function count(value) {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}

/** The right edge for bars of these lines: the smallest of a few round shares that holds them all. */
export function topShare(lines) {
  const most = Math.max(0, ...lines.flatMap((l) => [l.today.high, l.proposed.high]));
  return [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1].find((top) => most <= top) ?? 1;
}

/** Rules worth a line: those that refuse or degrade anything in either set, the largest change first. */
export function telling(rules, most) {
  const weight = (r) => Math.max(...r.lines.map((l) => Math.abs(l.proposed.share - l.today.share)));
  const size = (r) => Math.max(...r.lines.map((l) => Math.max(l.proposed.share, l.today.share)));
  return rules.filter((r) => size(r) > 0).sort((a, b) => weight(b) - weight(a) || size(b) - size(a)).slice(0, most);
}

/** The guard's watch over the last publish: GET /limits/guard. Null when it has watched nothing. */
export function readWatch(body) {
  if (!body?.state || body.state === "idle") return null;
  const users = count(body.users);
  return {
    state: body.state, version: body.version, previous: body.previous,
    leftMs: count(body.left_ms), ofMs: Math.max(0, Date.parse(body.until) - Date.parse(body.since)) || 0,
    users, refused: count(body.refused), before: count(body.would_refuse), why: body.why ?? "",
    share: users > 0 ? (count(body.refused) - count(body.would_refuse)) / users : 0,
  };
}
