import assert from "node:assert/strict";
import { test } from "node:test";
import { Combos, STAY_MS } from "../demo/models/combo.js";
import { Cooldown } from "../demo/models/cooldown.js";
import { Energy } from "../demo/models/energy.js";
import { LikeFolder, LikeTotal } from "../demo/models/likes.js";
import { Pace } from "../demo/models/pace.js";

test("the ring runs from whole to nothing in the time told", () => {
  const cooldown = new Cooldown();
  cooldown.start(4000, 1000, { reason: "rate_limited" });
  assert.equal(cooldown.at(1000).fraction, 1);
  assert.equal(cooldown.at(3000).fraction, 0.5);
  assert.equal(cooldown.at(3000).cause.reason, "rate_limited");
  assert.deepEqual(cooldown.at(5000), { active: false, leftMs: 0, fraction: 0, cause: null });
});

test("a shorter wait does not shorten a longer one; no wait starts none", () => {
  const cooldown = new Cooldown();
  cooldown.start(10_000, 0, { reason: "muted" });
  cooldown.start(500, 100, { reason: "rate_limited" });
  assert.equal(cooldown.at(5000).cause.reason, "muted");
  cooldown.end();
  cooldown.start(undefined, 0, {});
  assert.ok(!cooldown.at(1).active);
});

test("likes: at most one request a second, of 1 to 20", () => {
  const folder = new LikeFolder();
  const sent = [];
  for (let t = 0; t < 10_000; t += 25) {
    folder.tap();
    const count = folder.take(t);
    if (count) sent.push([t, count]);
  }
  assert.equal(sent.length, 10);
  assert.ok(sent.every(([, n]) => n >= 1 && n <= 20));
  for (let i = 1; i < sent.length; i++) assert.ok(sent[i][0] - sent[i - 1][0] >= 1000);
  assert.equal(new LikeFolder().dueIn(0), null);
});

test("the total never falls", () => {
  const total = new LikeTotal();
  assert.equal(total.take(10), 10);
  assert.equal(total.take(7), 0);
  assert.equal(total.value, 10);
  assert.equal(total.take(12), 2);
});

const gift = (user, combo, count = 1) => ({ user: { id: user }, gift: "rose", count, combo });

test("one giver's combo is one banner that grows and stays while it lasts", () => {
  const combos = new Combos(3);
  combos.gift(gift("a", 1), 1, 0);
  combos.gift(gift("a", 2), 1, 1000);
  const [banner] = combos.at(1000);
  assert.equal(banner.total, 2);
  combos.gift(gift("a", 3), 1, 1000 + STAY_MS - 1);
  assert.equal(combos.at(1000 + STAY_MS).length, 1);
  assert.equal(combos.at(2000 + 2 * STAY_MS).length, 0);
  assert.ok(combos.empty);
});

test("late and repeated combos never count down", () => {
  const combos = new Combos(1);
  combos.gift(gift("a", 5), 1, 0);
  combos.gift(gift("a", 4), 1, 1);
  assert.equal(combos.at(1)[0].total, 5);
});

test("more givers than slots wait, the dearest first, in bounded number", () => {
  const combos = new Combos(2);
  for (let i = 0; i < 100; i++) combos.gift(gift(`u${i}`, 1), i, 0);
  const first = combos.at(0).map((b) => b.worth);
  assert.deepEqual(first, [99, 98]);
  assert.equal(combos.at(STAY_MS + 1)[0].worth, 97);
});

test("energy rises with the room, stays below one and fades", () => {
  const energy = new Energy();
  for (let i = 0; i < 500; i++) energy.add("danmaku", 1, i * 20);
  const high = energy.at(10_000);
  assert.ok(high > 0.8 && high <= 1);
  assert.ok(energy.at(20_000) < 0.1);
});

test("a busy machine is drawn for less often, a free one finely", () => {
  const pace = new Pace();
  let now = 0;
  const run = (gap, frames) => {
    for (let i = 0; i < frames; i++) {
      now += Math.max(gap, pace.everyMs);
      if (pace.due(now)) pace.drawn(now);
    }
  };
  run(33, 100);
  assert.equal(pace.scale, 1);
  run(400, 100);
  assert.equal(pace.scale, 0.7);
  assert.equal(pace.everyMs, 200);
  run(0, 20_000);
  assert.equal(pace.scale, 1);
});
