import assert from "node:assert/strict";
import { test } from "node:test";
import { check } from "../demo/models/limits/check.js";
import { detail, diff, direction } from "../demo/models/limits/diff.js";
import { Draft, merge } from "../demo/models/limits/draft.js";
import { formatDuration, parseDuration } from "../demo/models/limits/duration.js";
import { controlFor, gather, placeFault } from "../demo/models/limits/faults.js";
import { readVersions } from "../demo/models/limits/history.js";
import { readList, readNumber, routesOf, withRoutes } from "../demo/models/limits/input.js";
import { readReport, readWatch, telling, topShare } from "../demo/models/limits/preview.js";
import { tidy, valueAt, withValue } from "../demo/models/limits/rule.js";
import { readStandings, subjectOf } from "../demo/models/limits/standing.js";

const seat = () => ({ name: "seat", action: "danmaku", scope: "user_room", rate: 1, burst: 3, multiply: { host: 5 } });
const room = () => ({
  name: "room", action: "danmaku", scope: "room", rate: 0, burst: 0, degrade: { rate: 1000, burst: 1000 },
  tiers: [{ below: 1000, rate: 200, burst: 200 }, { rate: 40, burst: 80 }], exempt: { roles: ["host", "moderator"] }, cluster: true,
});
const set = (version = 7, rules = [seat(), room()]) => ({ version, rules });

test("durations are read and written as Go does", () => {
  for (const [text, ms] of [["30s", 30_000], ["1m0s", 60_000], ["1.5h", 5_400_000], ["500ms", 500], ["1h2m3s", 3_723_000], ["0", 0], ["250us", 0.25]]) {
    assert.equal(parseDuration(text), ms, text);
  }
  for (const text of ["", "30", "s", "30 s", "-1s", "1d", null]) assert.equal(parseDuration(text), null, String(text));
  for (const [ms, text] of [[1000, "1s"], [90_000, "1m30s"], [3_600_000, "1h"], [500, "500ms"], [1500, "1.5s"], [0, "0s"]]) assert.equal(formatDuration(ms), text);
  for (const ms of [1, 999, 1001, 59_999, 61_000, 86_400_000]) assert.equal(parseDuration(formatDuration(ms)), ms);
});

test("a rule has one form, whatever form it came in", () => {
  assert.deepEqual(tidy(room()), {
    name: "room", action: ["danmaku"], scope: "room", degrade: { rate: 1000, burst: 1000 },
    tiers: [{ below: 1000, rate: 200, burst: 200 }, { rate: 40, burst: 80 }], exempt: { roles: ["host", "moderator"] }, cluster: true,
  });
  assert.deepEqual(tidy({ ...seat(), per: "1s", algorithm: "token_bucket", cost: "1", shadow: false, priority: 0, role: "" }), tidy(seat()));
  assert.equal(tidy({ ...seat(), per: "1m0s" }).per, "1m");
  assert.equal(tidy({ ...seat(), rate: 0 }).rate, 0, "a rate of nothing is a number, not an absence");
  const raw = room();
  tidy(raw).tiers[0].rate = 9;
  assert.equal(raw.tiers[0].rate, 200);
});

test("values by path", () => {
  assert.equal(valueAt(room(), "tiers[1].burst"), 80);
  assert.equal(valueAt(seat(), "degrade.rate"), undefined);
  assert.deepEqual(withValue(seat(), "degrade.rate", 5).degrade, { rate: 5 });
  assert.deepEqual(withValue({}, "tiers[0].rate", 1), { tiers: [{ rate: 1 }] });
  assert.equal(withValue(room(), "tiers[0]", undefined).tiers.length, 1);
  assert.ok(!("multiply" in withValue(seat(), "multiply", undefined)));
});

test("a diff names rule and field, and what came or went whole", () => {
  const changes = diff([seat(), room()], [{ ...seat(), rate: 5, per: "1s" }, { ...seat(), name: "new" }]);
  assert.deepEqual(changes.map((c) => [c.rule, c.field, typeof c.before, typeof c.after]), [
    ["new", undefined, "undefined", "object"], ["room", undefined, "object", "undefined"], ["seat", "rate", "number", "number"],
  ]);
  assert.deepEqual(changes.map(direction), [-1, 1, 1]);
  assert.deepEqual(diff([seat()], [tidy(seat())]), []);
  assert.deepEqual([["1m", "30s"], [undefined, "2s"], ["30s", undefined]].map(([before, after]) => direction({ field: "per", before, after })), [1, -1, 1]);
});

test("a change of a part names the part", () => {
  const changed = { ...room(), degrade: { rate: 500, burst: 1000 }, tiers: [{ below: 1000, rate: 100, burst: 200, per: "2s" }, { rate: 40, burst: 80 }], exempt: { roles: ["host"] } };
  const parts = diff([room()], [changed]).flatMap(detail);
  assert.deepEqual(parts.map((c) => `${c.field} ${direction(c)}`), ["degrade.rate -1", "exempt.roles 0", "tiers[0].rate -1", "tiers[0].per -1"]);
  const whole = diff([room()], [{ ...room(), tiers: [{ rate: 1, burst: 1 }], degrade: undefined }]).flatMap(detail);
  assert.deepEqual(whole.map((c) => c.field), ["degrade", "tiers"]);
});

test("a draft knows what is touched, and takes it back", () => {
  const draft = new Draft(set());
  const [a, b] = draft.entries.map((e) => e.key);
  assert.equal(draft.dirty, false);
  draft.set(a, "rate", 2);
  draft.set(a, "degrade.rate", 9);
  assert.deepEqual(draft.touchedFields(a), ["degrade", "rate"]);
  assert.equal(draft.touched(b), false);
  draft.remove(b);
  assert.deepEqual(draft.rules.map((r) => r.name), ["seat"]);
  assert.equal(draft.keyAt(1), null);
  draft.restore(b);
  draft.restore(a);
  assert.equal(draft.dirty, false);
  draft.set(a, "per", "1s");
  assert.equal(draft.dirty, false, "the same in other words is no change");
});

test("new rules and copies start in shadow under names of their own", () => {
  const draft = new Draft(set());
  const copy = draft.duplicate(draft.entries[0].key);
  const again = draft.duplicate(draft.entries[0].key);
  const fresh = draft.add();
  assert.deepEqual(draft.entries.map((e) => e.rule.name), ["seat", "seat-copy-2", "seat-copy", "room", "new-rule"]);
  for (const key of [copy, again, fresh]) assert.equal(draft.entry(key).rule.shadow, true);
  assert.deepEqual(check(draft.rules), []);
  draft.remove(fresh);
  draft.restore(again);
  draft.remove(copy);
  assert.equal(draft.dirty, false);
});

test("a draft moves onto what somebody else published", () => {
  const draft = new Draft(set());
  draft.set(draft.entries[0].key, "rate", 2);
  draft.remove(draft.entries[1].key);
  const conflicts = draft.rebase(set(8, [{ ...seat(), burst: 6, rate: 9 }, room(), { ...seat(), name: "theirs" }]));
  assert.deepEqual(conflicts, [{ rule: "seat", field: "rate", theirs: 9, mine: 2 }]);
  assert.equal(draft.base.version, 8);
  assert.deepEqual(draft.rules.map((r) => [r.name, r.rate, r.burst]), [["seat", 2, 6], ["theirs", 1, 3]]);
  assert.deepEqual(draft.changes().map((c) => [c.rule, c.field]), [["room", undefined], ["seat", "rate"]]);
});

test("a merge keeps both sides where they do not meet", () => {
  const [s, r] = [tidy(seat()), tidy(room())];
  assert.deepEqual(merge([s, r], [s], [s, r]).rules.map((x) => x.name), ["seat"]);
  assert.deepEqual(merge([s, r], [s, r], [s]).rules.map((x) => x.name), ["seat"]);
  const gone = merge([s], [{ ...s, rate: 2 }], []);
  assert.deepEqual([gone.rules.length, gone.conflicts.length], [1, 1]);
});

test("an older version becomes a draft on the set in force", () => {
  const draft = new Draft(set());
  draft.replace([{ ...seat(), burst: 9 }]);
  assert.deepEqual(draft.changes().map((c) => [c.rule, c.field]), [["room", undefined], ["seat", "burst"]]);
  draft.reset();
  assert.equal(draft.dirty, false);
});

test("checks name the field, as the server does", () => {
  const faults = (rule) => check([tidy({ ...seat(), ...rule })]).map((f) => `${f.field} ${f.code}`);
  assert.deepEqual(faults({}), []);
  assert.deepEqual(check([seat(), room()].map(tidy)), []);
  assert.deepEqual(faults({ name: "A b", action: ["dance"], scope: "moon" }), ["name name", "action action", "scope scope"]);
  assert.deepEqual(faults({ rate: -1, burst: 0, per: "soon" }), ["rate range", "burst range", "per duration"]);
  assert.deepEqual(faults({ rate: "x" }), ["rate range"]);
  assert.deepEqual(faults({ burst: undefined }), ["burst missing"]);
  assert.deepEqual(faults({ per: "9000h" }), ["per per"]);
  assert.deepEqual(faults({ fold: true, degrade: { rate: 1, burst: 1 } }), ["fold foldDegrade"]);
  assert.deepEqual(faults({ scope: "conn", cluster: true }), ["cluster connCluster"]);
  assert.deepEqual(faults({ floor: { gift: 1, danmaku: 3 } }), ["floor.gift floorAction", "floor.danmaku range"]);
  assert.deepEqual(faults({ exempt: { networks: ["10.0.0.0/8", "10.0.0.1", "fd00::/8"] } }), ["exempt.networks[1] prefix"]);
  assert.deepEqual(faults({ multiply: { host: 0 }, grace: "3s" }), ["multiply.host range", "grace grace"]);
  assert.deepEqual(faults({ algorithm: "sliding_window", burst: undefined, rate: 0 }), ["rate range"]);
  assert.deepEqual(faults({ algorithm: "concurrency", rate: undefined, burst: 4, per: "1m" }), []);
  const slots = { algorithm: "concurrency", rate: undefined, burst: 2000, multiply: undefined };
  assert.deepEqual(faults({ ...slots, scope: "net", action: "connect" }), [], "sockets held are one count");
  assert.deepEqual(faults({ ...slots, scope: "key", action: "api" }), ["burst range"]);
  assert.deepEqual(check([seat(), seat()].map(tidy)).map((f) => [f.index, f.code]), [[1, "taken"]]);
  const tiers = check([tidy({ ...room(), tiers: [{ below: 100, rate: 1, burst: 1 }, { below: 50, rate: 1, burst: 1 }, { below: 5, rate: 1, burst: 0 }] })]);
  assert.deepEqual(tiers.map((f) => `${f.field} ${f.code}`), ["tiers[1].below tierOrder", "tiers[2].burst range", "tiers[2].below lastTier"]);
});

test("a choice takes away what it rules out", () => {
  const after = (rule, path, value) => {
    const draft = new Draft(set(7, [rule]));
    draft.set(draft.entries[0].key, path, value);
    assert.deepEqual(check(draft.rules), [], `${path} ${JSON.stringify(value)}`);
    return draft.rules[0];
  };
  assert.deepEqual(after(room(), "tiers", undefined).burst, 80);
  assert.equal(after(seat(), "tiers", [{ below: 10, rate: 1, burst: 1 }, { rate: 2, burst: 2 }]).rate, undefined);
  for (const algorithm of ["token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log", "concurrency"]) {
    after({ ...seat(), per: "30s", initial: 2 }, "algorithm", algorithm);
    after({ ...room(), scope: "user" }, "algorithm", algorithm);
    after({ name: "slots", action: "join", scope: "user", rate: 0, burst: 4, per: "1m", algorithm: "concurrency" }, "algorithm", algorithm);
  }
  assert.deepEqual(after({ ...seat(), action: ["danmaku", "gift"], floor: { danmaku: 1 } }, "action", ["gift"]).floor, undefined);
  assert.equal(after({ ...seat(), on_outage: "open", grace: "3s" }, "on_outage", "closed").grace, undefined);
});

test("faults find their rule and the control that shows them", () => {
  assert.deepEqual(placeFault({ path: "rules[12].degrade.burst", problem: "p" }), { index: 12, field: "degrade.burst", problem: "p" });
  assert.deepEqual(placeFault({ path: "rules", problem: "p" }), { index: null, field: "rules", problem: "p" });
  const fields = ["name", "degrade.burst", "tiers[0].below", "tiers", "exempt.networks"];
  assert.equal(controlFor("exempt.networks[3]", fields), "exempt.networks");
  assert.equal(controlFor("tiers[0].below", fields), "tiers[0].below");
  assert.equal(controlFor("tiers[1].below", fields), "tiers");
  assert.equal(controlFor("grace", fields), "");
  const draft = new Draft(set());
  draft.remove(draft.entries[0].key);
  const found = gather([{ index: 0, field: "burst", code: "range", values: {} }], [
    { path: "rules[0].burst", problem: "want more" }, { path: "rules[0].rate", problem: "want less" }, { path: "", problem: "too long" }, { path: "rules[5].rate", problem: "stale" },
  ], (i) => draft.keyAt(i), (f) => f.code);
  assert.deepEqual(found.byKey.get(draft.entries[1].key), [{ field: "burst", text: "range" }, { field: "rate", text: "want less" }]);
  assert.deepEqual([found.others, found.count], [["too long", "stale"], 4]);
});

test("numbers and lists as people type them", () => {
  assert.deepEqual(["1,000", " 12 ", "１０", "", "1.5", "many"].map(readNumber), [1000, 12, 10, undefined, "1.5", "many"]);
  assert.deepEqual(readList("a, b，c\nb  d"), ["a", "b", "c", "d"]);
});

test("routes stand among the actions", () => {
  const actions = withRoutes(["danmaku", "api:/old"], "GET /rooms/{room}, /x，/x ");
  assert.deepEqual(actions, ["danmaku", "api:GET /rooms/{room}", "api:/x"]);
  assert.equal(routesOf(actions), "GET /rooms/{room}, /x");
  assert.deepEqual(check([tidy({ ...seat(), action: actions })]), []);
});

test("a report becomes shares with their error", () => {
  const p = (share, low = share, high = share) => ({ count: 1, of: 2, share, low, high });
  const outcome = (m, u) => ({ refused: { messages: m, users: u }, degraded: { messages: p(0), users: p(0) } });
  const report = readReport({
    seconds: 300, messages: 900, users: 50, sampled_users: 50, sampled_share: 0.5, newly_refused_users: p(0.2),
    today: outcome(p(0.01, 0.005, 0.02), p(0)), proposed: outcome(p(0.3, 0.25, 0.35), p(0.02)), unjudged_rules: ["connect-address"],
    rules: [{ name: "quiet", today: outcome(p(0), p(0)), proposed: outcome(p(0), p(0)) }, { name: "loud", scope: "user", today: outcome(p(0.1), p(0)), proposed: outcome(p(0.3), p(0)) }],
    verdict: { override: true, reasons: [{ code: "refuses_more_messages", text: "it refuses" }], warnings: [{ code: "little_traffic", text: "few" }] },
  });
  assert.deepEqual(report.lines.map((l) => `${l.kind} ${l.of} ${l.change}`), ["refused messages more", "degraded messages same", "refused users more", "degraded users same"]);
  assert.equal(report.lines[0].proposed.error.toFixed(2), "0.05");
  assert.deepEqual([report.override, report.reasons.length, report.warnings.length, report.few], [true, 1, 0, false]);
  assert.deepEqual(telling(report.rules, 5).map((r) => r.name), ["loud"]);
  assert.equal(topShare(report.lines), 0.5);
  for (const body of [null, {}, { today: {} }, "x"]) assert.equal(readReport(body), null);
});

test("the guard's watch, versions and standings are read with care", () => {
  assert.equal(readWatch({ state: "idle" }), null);
  assert.equal(readWatch({ state: "within", users: 200, refused: 30, would_refuse: 10 }).share, 0.1);
  const watch = readWatch({ state: "within", since: "1999-01-01T00:00:00Z", until: "1999-01-01T00:01:00Z", left_ms: 40_000 });
  assert.deepEqual([watch.leftMs, watch.ofMs, readWatch({ state: "within" }).ofMs], [40_000, 60_000, 0]); // whatever day it is here
  const versions = readVersions({ versions: [{ version: 1, kind: "seed", rules: [seat()] }, { version: 2, kind: "guard", author: "guard", time: "2026-01-01T00:00:00Z" }, null] });
  assert.deepEqual(versions.map((v) => [v.version, v.kind, v.changed]), [[2, "guard", 0], [1, "seed", 0]]);
  const { rules, verdict, waitMs } = readStandings({ rules: [
    { rule: "a", why: "applies", level: 1, burst: 4, retry_after_ms: 0 }, { rule: "b", why: "applies", level: 0, burst: 3, retry_after_ms: 900 }, { rule: "c", why: "shadow", burst: 3, retry_after_ms: -1 }] });
  assert.deepEqual([rules[0].share, verdict, waitMs], [0.25, "wait", 900]);
  assert.equal(readStandings({ rules: [{ why: "applies", retry_after_ms: -1 }] }).verdict, "never");
  assert.equal(readStandings(null).verdict, "none");
  assert.deepEqual([subjectOf({ user: "u", room: "r" }), subjectOf({ addr: "1.2.3.4" }), subjectOf({})], [{ user: "u", room: "r" }, { addr: "1.2.3.4" }, null]);
});
