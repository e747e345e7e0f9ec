import assert from "node:assert/strict";
import { test } from "node:test";
import { readQuota, readRefusals } from "../demo/models/desk.js";
import { Metrics } from "../demo/models/metrics.js";
import { readPeople } from "../demo/models/people.js";
import { honoursOf, portray } from "../demo/models/person.js";
import { readRooms, totalOnline } from "../demo/models/roster.js";
import { sceneOf } from "../demo/models/scene.js";
import { Series } from "../demo/models/series.js";
import { readSummary } from "../demo/models/summary.js";
import { tokenInFragment } from "../demo/models/token.js";

test("rooms by size, odd ones left out", () => {
  const rooms = readRooms({ rooms: [{ id: "b", online: 5 }, { id: "a", online: 5, title: "A", rates: { danmaku: 2 } }, null, {}, { id: "c", online: -3, closed: true }] });
  assert.deepEqual(rooms.map((r) => [r.id, r.title, r.online, r.danmaku, r.closed]), [["a", "A", 5, 2, false], ["b", "b", 5, 0, false], ["c", "c", 0, 0, true]]);
  assert.equal(totalOnline(rooms), 10);
  assert.deepEqual(readRooms({ rooms: [{ id: "room10" }, { id: "room2" }] }).map((room) => room.id), ["room2", "room10"]);
  for (const body of [null, undefined, {}, { rooms: 7 }]) assert.deepEqual(readRooms(body), []);
});

test("quotas: the emptiest first, shares within bounds", () => {
  const quota = readQuota({ quota: [{ rule: "r", action: "gift", level: 2000, burst: 1000, per_second: 500 }, { rule: "d", action: "danmaku", level: -4, burst: 80, per_second: 40 }, null] });
  assert.deepEqual(quota.map((q) => [q.rule, q.share, q.low]), [["d", 0, true], ["r", 1, false]]);
});

test("refusals: with the user as an object or an id, the newest first", () => {
  const refusals = readRefusals({ refusals: [{ user: "u1", name: "Ann", action: "danmaku", reason: "rate_limited", count: 3, time: 9, age_ms: 5 }, { user: { id: "u2" }, time: 5, age_ms: 2 }] });
  assert.deepEqual(refusals.map((r) => [r.user.id, r.count, r.ageMs]), [["u2", 1, 2], ["u1", 3, 5]]);
  assert.equal(refusals[1].user.name, "Ann");
});

test("metrics: samples by label, escapes, and what is no sample", () => {
  const m = new Metrics('# HELP a b\na 3\nb{x="1",y="q\\"\\\\\\n,}"} 2.5e3 17\nb{x="2"} NaN\nb{x="1"} 1\nc +Inf\n\n');
  assert.equal(m.sum("a"), 3);
  assert.equal(m.sum("b", { x: "1" }), 2501);
  assert.equal(m.samples("b")[0].labels.y, 'q"\\\n,}');
  assert.deepEqual(m.by("b", "x")[0], { labels: { x: "1" }, value: 2501 });
  assert.equal(m.sum("c"), Infinity);
  assert.equal(m.sum("none"), 0);
});

test("a token is read from the fragment alone", () => {
  assert.equal(tokenInFragment("#token=a.b.c"), "a.b.c");
  assert.equal(tokenInFragment("#x=1&token=q"), "q");
  assert.equal(tokenInFragment(""), null);
});

test("a room's scene and a person's face follow from their names", () => {
  assert.deepEqual(sceneOf("demo"), sceneOf("demo"));
  assert.notDeepEqual(sceneOf("demo").near, sceneOf("demo2").near);
  assert.deepEqual(portray({ id: "u1", name: "👩‍👩‍👧 family" }).initial, "👩‍👩‍👧");
  assert.deepEqual(portray(undefined), { name: "", initial: "?", tone: portray({ id: "" }).tone });
  for (const id of ["a", "b", "guest-1", "x".repeat(64)]) assert.ok(portray({ id }).tone >= 0 && portray({ id }).tone < 12);
});

test("honours are what the page knows of a user's attributes, in their order, short, and never markup or an object", () => {
  const attrs = { badge: "👩‍👩‍👧".repeat(20), level: 12, avatar: "a1", fan_club: { a: 1 } };
  assert.deepEqual(honoursOf({ id: "u", attrs }), [{ name: "level", value: "12" }, { name: "badge", value: "👩‍👩‍👧".repeat(16) }]);
  assert.deepEqual(honoursOf({ id: "u" }), []);
  assert.deepEqual(honoursOf(undefined), []);
});

test("people: the show or none, and persons with what is odd left out", () => {
  const read = readPeople({ now: 2, sessions: 3, show: { begin: 5, people: 9, exact: false, peak: 4, peak_at: 6, people_by_minute: [1, "x", 4] }, people: [{ id: "a", role: "host", since: 7, sessions: 2 }, { id: 5 }, { id: "b", role: "emperor" }], next: "0.1.b" });
  assert.deepEqual(read.show, { begin: 5, end: 0, people: 9, exact: false, peak: 4, peakAt: 6, minutes: [1, 0, 4] });
  assert.deepEqual(read.people.map((p) => [p.user.id, p.role, p.since, p.sessions]), [["a", "host", 7, 2], ["b", "viewer", 0, 1]]);
  assert.equal(read.more, true);
  for (const body of [null, undefined, {}, { show: 7, people: 7 }]) assert.deepEqual(readPeople(body), { now: 0, sessions: 0, show: null, people: [], more: false });
});

test("a show's summary, odd ones left out", () => {
  const s = readSummary({ room: "demo", show: { begin: 5, end: 9, people: 2, exact: true }, danmaku: 7, danmaku_by_minute: [3, 4], gifts: { count: 1, value: 10, partial: true, by_gift: [{ id: "rose", count: 1, value: 10 }, null] }, acts: [{ action: "mute", user: "u", by: "h" }], refused: [{ user: "u", count: 2, rule: "r" }, 7], shows: [5, "x"] });
  assert.deepEqual([s.title, s.danmaku, s.byMinute, s.gifts.byGift[0].name, s.gifts.partial, s.acts[0].user, s.refused[0].answer.rule, s.shows], ["demo", 7, [3, 4], "rose", true, "u", "r", [5]]);
  for (const body of [null, {}, { show: 7 }]) assert.equal(readSummary(body), null);
});
