import assert from "node:assert/strict";
import { test } from "node:test";
import { seeded } from "../demo/models/scene.js";
import { FLIGHT_MS, Lanes, STILL_MS } from "../demo/models/lanes.js";
import { WaitingRoom } from "../demo/models/waiting.js";

const ROW = 30;

/** Left and right edge of a text at `t`. */
function edges({ at, width }, stage, t) {
  const right = stage - ((stage + width) / FLIGHT_MS) * (t - at) + width;
  return [right - width, right];
}

test("no two texts of a lane ever overlap, whatever the widths and times", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = seeded(seed);
    const stage = 300 + Math.floor(random() * 1300);
    const lanes = new Lanes();
    lanes.resize(stage, 300, ROW);
    const flights = [];
    let now = 0;
    for (let i = 0; i < 400; i++) {
      now += random() ** 3 * 900;
      const width = 20 + Math.floor(random() ** 2 * 1400);
      const place = lanes.place("scroll", width, now);
      if (place) flights.push({ at: now, width, row: place.row });
    }
    assert.ok(flights.length > 50);
    assertApart(flights, stage, random);
  }
});

function assertApart(flights, stage, random) {
  for (const [i, a] of flights.entries()) {
    for (const b of flights.slice(i + 1)) {
      if (b.row !== a.row || b.at >= a.at + FLIGHT_MS) continue;
      for (const t of [b.at, a.at + FLIGHT_MS, b.at + random() * (a.at + FLIGHT_MS - b.at)]) {
        assert.ok(edges(b, stage, t)[0] >= edges(a, stage, t)[1] - 1e-6, `overlap at ${t}`);
      }
    }
  }
}

test("a longer text, which is faster, does not catch up with the one before", () => {
  const lanes = new Lanes();
  lanes.resize(1000, ROW, ROW);
  assert.ok(lanes.place("scroll", 50, 0));
  assert.equal(lanes.place("scroll", 900, 1000), null);
  assert.ok(lanes.place("scroll", 50, 1000));
});

test("density leaves the upper lanes to scroll; own texts may use all", () => {
  const lanes = new Lanes();
  lanes.resize(1000, 20 * ROW, ROW);
  lanes.density = 0.25;
  const rows = new Set();
  for (let i = 0; i < 50; i++) {
    const place = lanes.place("scroll", 200, 0);
    if (place) rows.add(place.row);
  }
  assert.deepEqual([...rows], [2, 3, 4, 5]);
  assert.equal(lanes.place("scroll", 200, 0, { own: true }).row, 6);
  lanes.density = 0;
  assert.equal(lanes.place("scroll", 10, 100_000), null);
});

test("still texts have rows of their own at top and bottom, each for its time", () => {
  const lanes = new Lanes();
  lanes.resize(1000, 20 * ROW, ROW);
  assert.deepEqual([0, 1].map(() => lanes.place("top", 100, 0).row), [0, 1]);
  assert.deepEqual([0, 1].map(() => lanes.place("bottom", 100, 0).row), [19, 18]);
  assert.equal(lanes.place("top", 100, STILL_MS - 1), null);
  assert.equal(lanes.place("top", 100, STILL_MS).row, 0);
  assert.equal(lanes.place("top", 1001, 60_000), null);
  lanes.resize(1000, 4 * ROW, ROW);
  assert.equal(lanes.place("top", 100, 0).mode, "scroll");
});

test("a stage of any size has a lane", () => {
  for (const height of [0, 10, 100, 149, 150, 299, 300, 5000]) {
    const lanes = new Lanes();
    lanes.resize(320, height, ROW);
    assert.ok(lanes.rowCount >= 1, String(height));
    for (const [i, mode] of ["scroll", "top", "bottom"].entries()) assert.ok(lanes.place(mode, 50, i * 9000), `${mode} at ${height}`);
  }
});

test("waiting: bounded, own first, too old is gone", () => {
  const room = new WaitingRoom(3);
  for (const n of [1, 2, 3, 4]) room.add({ n }, 0);
  room.add({ n: 5, own: true }, 0);
  const offered = [];
  room.offer((item) => offered.push(item.n) && false, 100);
  assert.deepEqual(offered, [5, 3, 4]);
  room.offer(() => false, 1300);
  assert.equal(room.size, 1);
  room.offer((item) => item.own, 1400);
  assert.equal(room.size, 0);
});
