import assert from "node:assert/strict";
import { test } from "node:test";
import { Decisions, GAP_MS } from "../demo/models/limits/decisions.js";
import { RefusalCount } from "../demo/models/limits/refusals.js";
import { nearest, niceTop, path, runs } from "../demo/models/limits/scale.js";
import { Metrics } from "../demo/models/metrics.js";

const metrics = (version, counts) => new Metrics([
  `liveroom_rules_version ${version}`,
  ...Object.entries(counts).map(([key, n]) => {
    const [rule, action, outcome] = key.split(" ");
    return `liveroom_limit_decisions_total{rule="${rule}",scope="user",action="${action}",outcome="${outcome}"} ${n}`;
  }),
].join("\n"));

test("rates a second out of counters, the first reading says nothing", () => {
  const d = new Decisions();
  d.take(metrics(1, { "a danmaku allow": 1000, "a danmaku reject": 5 }), 0);
  assert.deepEqual(d.points("rule:a"), []);
  d.take(metrics(1, { "a danmaku allow": 1040, "a danmaku reject": 9 }), 2000);
  assert.deepEqual(d.points("rule:a"), [{ at: 2000, ms: 2000, broken: false, allow: 20, degrade: 0, reject: 2, shadow: 0 }]);
});

test("a node that starts anew counts from zero, and so does a rule that is new", () => {
  const d = new Decisions();
  d.take(metrics(1, { "a danmaku allow": 1000 }), 0);
  d.take(metrics(1, { "a danmaku allow": 10, "b danmaku reject": 4 }), 1000);
  assert.equal(d.last("rule:a").allow, 10);
  assert.equal(d.last("rule:b").reject, 4);
  assert.ok(d.points("rule:a").every((p) => p.allow >= 0));
});

test("an action's requests are counted once, though every rule counts them", () => {
  const d = new Decisions();
  d.take(metrics(1, {}), 0);
  d.take(metrics(1, {
    "conn danmaku allow": 80, "conn danmaku reject": 3, "room danmaku allow": 60, "room danmaku degrade": 20, "extra danmaku shadow_reject": 7, "extra danmaku allow": 50,
    "frames frame allow": 500,
  }), 1000);
  assert.deepEqual(d.last("action:danmaku"), { at: 1000, ms: 1000, broken: false, allow: 60, degrade: 20, reject: 3, shadow: 7 });
  assert.equal(d.last("all").allow, 60, "frames carry the others and are not added to them");
  assert.deepEqual(d.actions(), ["frame", "danmaku"]);
});

test("what refuses most comes first, in requests of the window", () => {
  const d = new Decisions(60_000);
  for (let i = 0; i <= 10; i++) d.take(metrics(1, { "a gift allow": 100 * i, "b gift reject": 2 * i, "c gift reject": 3 * i }), i * 1000);
  assert.deepEqual(d.rules().map((r) => r.rule), ["c", "b", "a"]);
  assert.equal(Math.round(d.sum("rule:c").reject), 30);
  assert.equal(Math.round(d.sum("rule:c", 5000).reject), 15);
});

test("the window forgets, and quiet rules go", () => {
  const d = new Decisions(10_000);
  d.take(metrics(1, { "a gift allow": 0 }), 0);
  d.take(metrics(1, { "a gift allow": 5 }), 1000);
  for (let at = 2000; at <= 30_000; at += 1000) d.take(metrics(1, { "a gift allow": 5 }), at);
  assert.equal(d.points("all").length, 11);
  assert.deepEqual(d.rules(), []);
});

test("a change of the rules' version leaves a mark", () => {
  const d = new Decisions();
  assert.equal(d.take(metrics(3, {}), 0), false);
  assert.equal(d.take(metrics(3, {}), 1000), false);
  assert.equal(d.take(metrics(4, {}), 2000), true);
  const back = new Metrics('liveroom_rules_version 5\nliveroom_rules_rollbacks_total{by="guard"} 1');
  assert.equal(d.take(back, 3000), true);
  assert.deepEqual(d.marks, [{ at: 2000, version: 4, by: "somebody" }, { at: 3000, version: 5, by: "guard" }]);
});

test("a silence breaks the curve", () => {
  const d = new Decisions();
  let at = 0;
  for (const wait of [0, 1000, 1000, GAP_MS + 1, 1000]) d.take(metrics(1, { "a gift allow": (at += wait) }), at);
  assert.deepEqual(runs(d.points("rule:a"), (p) => p.at, (p) => p.allow).map((r) => r.length), [2, 2]);
});

test("scales and paths", () => {
  assert.deepEqual([0, 0.3, 1, 3, 7, 11, 480, 500, 501].map((v) => niceTop(v)), [1, 1, 1, 5, 10, 20, 500, 500, 1000]);
  assert.equal(path([[0, 1], [2, 3]]), "M0.0 1.0L2.0 3.0");
  assert.equal(path([[0, 1], [2, 3]], 9), "M0.0 1.0L2.0 3.0L2.0 9L0.0 9Z");
  assert.equal(path([]), "");
  assert.equal(nearest([{ at: 1 }, { at: 5 }], 4).at, 5);
  assert.equal(nearest([], 4), null);
});

test("a room's refusals are what its lines grew by", () => {
  const line = (id, count) => ({ user: { id }, action: "danmaku", answer: { rule: "r" }, count });
  const c = new RefusalCount(10_000);
  assert.equal(c.take([line("a", 400)], 0), 0, "the first look tells nothing about when");
  assert.equal(c.take([line("a", 403), line("b", 2)], 3000), 5);
  assert.equal(c.take([line("b", 1)], 6000), 6);
  assert.equal(c.take([line("b", 1)], 13_001), 1);
});
