import assert from "node:assert/strict";
import { test } from "node:test";
import { Decisions } from "../demo/models/limits/decisions.js";
import { RefusalCount } from "../demo/models/limits/refusals.js";
import { nearest, niceTop, path, split, timeTicks } from "../demo/models/limits/scale.js";

/** An answer of GET /limits/traffic: counts by "rule action outcome", newest step last. */
const traffic = (counts, more = {}) => {
  const steps = Math.max(1, ...Object.values(counts).map((n) => n.length));
  const series = Object.entries(counts).map(([key, n]) => {
    const [rule, action, outcome] = key.split(" ");
    return { rule, scope: "user", action, outcome, n };
  });
  return { at: 100_000, step_ms: 5000, nodes: 1, figures: { sessions: Array(steps).fill(7), admitted: Array(steps).fill(10) }, changes: [], top: [], series, ...more };
};

test("rates a second out of steps, filled at the first answer", () => {
  const d = new Decisions();
  d.take(traffic({ "a danmaku allow": [0, 100, 200], "a danmaku reject": [10] }));
  assert.deepEqual(d.points("rule:a").map((p) => [p.at, p.allow, p.reject]), [[90_000, 0, 0], [95_000, 20, 0], [100_000, 40, 2]]);
  assert.deepEqual(d.figure("sessions"), [7, 7, 7]);
  assert.deepEqual(d.figure("admitted"), [2, 2, 2]);
  assert.deepEqual(d.figure("nothing"), []);
});

test("an action's requests are counted once, though every rule counts them", () => {
  const d = new Decisions();
  d.take(traffic({
    "conn danmaku allow": [400], "conn danmaku reject": [15], "room danmaku allow": [300], "room danmaku degrade": [100], "extra danmaku shadow_reject": [35], "extra danmaku allow": [250],
    "frames frame allow": [2500], "frames frame something_new": [9],
  }));
  assert.deepEqual(d.last("action:danmaku"), { at: 100_000, ms: 5000, allow: 60, degrade: 20, reject: 3, shadow: 7 });
  assert.equal(d.last("all").allow, 60, "frames carry the others and are not added to them");
  assert.deepEqual(d.actions(), ["frame", "danmaku"]);
});

test("what refuses most comes first, in requests of the window", () => {
  const d = new Decisions();
  const n = (each) => Array(10).fill(each);
  d.take(traffic({ "a gift allow": n(100), "b gift reject": n(2), "c gift reject": n(3) }));
  assert.deepEqual(d.rules().map((r) => r.rule), ["c", "b", "a"]);
  assert.equal(Math.round(d.sum("rule:c").reject), 30);
  assert.equal(Math.round(d.sum("rule:c", 25_000).reject), 15);
});

test("a later answer takes the place of the one before; quiet rules are none", () => {
  const d = new Decisions();
  d.take(traffic({ "a gift allow": [5, 5] }));
  d.take(traffic({ "a gift allow": [0, 0, 0] }, { nodes: 3 }));
  assert.equal(d.points("all").length, 3);
  assert.deepEqual(d.rules(), []);
  assert.equal(d.nodes, 3);
});

test("a change of the rules' version leaves a mark, and is told once", () => {
  const d = new Decisions();
  const changes = [{ age_ms: 20_000, version: 4, kind: "publish" }];
  assert.equal(d.take(traffic({})), false);
  assert.equal(d.take(traffic({}, { changes })), true);
  assert.equal(d.take(traffic({}, { changes })), false);
  assert.equal(d.take(traffic({}, { changes: [...changes, { age_ms: 0, version: 5, kind: "guard" }] })), true);
  assert.deepEqual(d.marks, [{ at: 80_000, version: 4, by: "somebody" }, { at: 100_000, version: 5, by: "guard" }]);
  assert.equal(d.take(traffic({})), false, "a change that left the window is no change");
});

test("scales and paths", () => {
  assert.deepEqual([0, 0.3, 1, 3, 7, 11, 480, 500, 501].map((v) => niceTop(v)), [1, 1, 1, 5, 10, 20, 500, 500, 1000]);
  assert.equal(path([[0, 1], [2, 3]]), "M0.0 1.0L2.0 3.0");
  assert.equal(path([[0, 1], [2, 3]], 9), "M0.0 1.0L2.0 3.0L2.0 9L0.0 9Z");
  assert.equal(path([]), "");
  assert.equal(nearest([{ at: 1 }, { at: 5 }], 4).at, 5);
  assert.equal(nearest([], 4), null);
});

test("above and below the axis are one scale, and little is seen", () => {
  const { middle, above, below } = split(80, 20, 110, 5);
  assert.equal(middle, 85);
  assert.equal(above(80), 5);
  assert.equal(below(20), 105);
  assert.equal(middle - above(10), below(10) - middle);
  assert.equal(below(0.001), 86);
  assert.equal(below(0), 85);
});

test("the time axis has round instants, few enough to be read", () => {
  const minute = 60_000;
  for (const [from, to, step] of [[0, minute, 15_000], [7, 2 * minute, 30_000], [1234, 5 * minute, minute], [99_999, 10 * minute + 99_999, 2 * minute], [0, 60 * minute, 5 * minute]]) {
    const got = timeTicks({ from, to });
    assert.equal(got.step, step);
    assert.ok(got.ticks.every((at) => at % step === 0 && at >= from && at <= to));
  }
});

test("a room's refusals are what its lines grew by", () => {
  const line = (id, count) => ({ user: { id }, action: "danmaku", answer: { rule: "r" }, count });
  const c = new RefusalCount(10_000);
  assert.equal(c.take([line("a", 400)], 0), 0, "the first look tells nothing about when");
  assert.equal(c.take([line("a", 403), line("b", 2)], 3000), 5);
  assert.equal(c.take([line("b", 1)], 6000), 6);
  assert.equal(c.take([line("b", 1)], 13_001), 1);
});
