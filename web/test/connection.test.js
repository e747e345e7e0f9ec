import assert from "node:assert/strict";
import { test } from "node:test";
import { Connection } from "../client/connection.js";
import { give } from "../client/giving.js";
import { FakeSocket, FakeTimers, settle } from "../testkit/fakes.js";

function setUp(options = {}) {
  const timers = new FakeTimers();
  const sockets = [];
  const connection = new Connection({
    url: "ws://x/ws", room: "demo", lang: () => "zh", timers, random: () => 0.5,
    openSocket: () => {
      const socket = new FakeSocket();
      sockets.push(socket);
      return socket;
    },
    ...options,
  });
  const seen = { states: [], events: [], holes: [], welcomes: [] };
  connection.on("state", (s) => seen.states.push(s.phase));
  connection.on("event", (e) => seen.events.push(e));
  connection.on("hole", (h) => seen.holes.push(h));
  connection.on("welcome", (w) => seen.welcomes.push(w));
  const last = () => sockets.at(-1);
  const live = (extra = {}, ...after) => {
    last().opens();
    last().says({ ev: "welcome", id: last().sent[0].id, cursor: { gift: 41, chat: 1000 }, ...extra }, ...after);
  };
  return { timers, sockets, connection, seen, last, live };
}

test("says hello with room, language and token, and becomes live at the welcome", () => {
  const { connection, seen, last, live } = setUp({ token: () => "secret" });
  connection.start();
  live();
  const { op, room, lang, token, resume } = last().sent[0];
  assert.deepEqual({ op, room, lang, token, resume }, { op: "hello", room: "demo", lang: "zh", token: "secret", resume: undefined });
  assert.deepEqual(seen.states, ["connecting", "live"]);
});

test("an ack goes to its request, whatever comes between", async () => {
  const { connection, last, live, seen } = setUp();
  connection.start();
  live();
  const answer = connection.request("danmaku", { text: "hi" });
  const { id } = last().sent.at(-1);
  last().says({ ev: "danmaku", mid: "m1", text: "other", ts: 1 }, { ev: "ack", id, code: 200, mid: "m2" });
  assert.equal((await answer).mid, "m2");
  assert.equal(seen.events.length, 1);
});

test("without an answer the request resolves: not live, lost, timeout", async () => {
  const { connection, last, live, timers } = setUp();
  assert.equal((await connection.request("ping")).reason, "not_live");
  connection.start();
  live();
  const lost = connection.request("danmaku", { text: "a" });
  last().closes(1006);
  assert.equal((await lost).reason, "lost");
  await timers.pass(1000);
  live();
  const late = connection.request("danmaku", { text: "b" });
  await timers.pass(15_000);
  assert.equal((await late).reason, "timeout");
});

test("a lost connection backs off, growing, and a stable one starts anew", async () => {
  const { connection, timers, last, live, sockets } = setUp();
  connection.start();
  const waits = [];
  for (let i = 0; i < 9; i++) {
    last().closes(1006);
    waits.push(connection.state.waitMs);
    await timers.pass(connection.state.waitMs);
  }
  assert.deepEqual(waits, [375, 750, 1500, 3000, 6000, 12000, 22500, 22500, 22500]);
  live();
  await timers.pass(11_000);
  last().closes(1006);
  assert.equal(connection.state.waitMs, 375);
  assert.equal(sockets.length, 10);
});

test("a drain says when to come back, and the resume goes on where it was", async () => {
  const { connection, timers, last, live, seen, sockets } = setUp();
  connection.start();
  live({}, { ev: "gift", mid: "g42", seq: 42, prev: 41, ts: 1500 }, { ev: "danmaku", mid: "d1", ts: 1600 });
  last().closes(1001, '{"reconnect_in_ms":4000}');
  assert.equal(connection.state.phase, "waiting");
  assert.equal(connection.state.close.name, "drain");
  assert.equal(connection.state.waitMs, 4200);
  await timers.pass(3999);
  assert.equal(sockets.length, 1);
  await timers.pass(201);
  last().opens();
  assert.deepEqual(last().sent[0].resume, { gift: 42, chat: 1600, last: "d1" });
  last().says({ ev: "welcome", cursor: { gift: 44, chat: 2000 }, recovered: { gift: true, chat: true } },
    { ev: "danmaku", mid: "d1", ts: 1600 }, { ev: "gift", mid: "g43", seq: 43, prev: 42 }, { ev: "gift", mid: "g44", seq: 44, prev: 43 });
  assert.deepEqual(seen.events.map((e) => e.mid), ["g42", "d1", "g43", "g44"]);
  assert.deepEqual(seen.holes, []);
  assert.equal(seen.welcomes[1].resumed, true);
});

test("what comes with the welcome is of before, what comes after it is live", () => {
  const { connection, last, live, seen } = setUp();
  connection.start();
  live({}, { ev: "danmaku", mid: "m1", ts: 1 }, { ev: "gift", mid: "g2", seq: 2, prev: 1 });
  last().says({ ev: "danmaku", mid: "m2", ts: 1 });
  assert.deepEqual(seen.events.map((e) => [e.mid, e.replayed]), [["m1", true], ["g2", true], ["m2", undefined]]);
});

test("a missing gift is seen by prev; recovered:false starts from the server's cursor", () => {
  const { connection, last, live, seen } = setUp();
  connection.start();
  live({}, { ev: "gift", mid: "g45", seq: 45, prev: 43 });
  assert.deepEqual(seen.holes, [{ after: 41, before: 45 }]);
  last().says({ ev: "gift", mid: "g46", seq: 46, prev: 45 });
  assert.equal(seen.holes.length, 1);
});

test("4400 to 4499 do not come back; 4000 to 4099 do", async () => {
  for (const [code, phase] of [[4401, "refused"], [4403, "refused"], [4404, "refused"], [4499, "refused"], [4001, "waiting"], [4004, "waiting"], [4005, "waiting"], [4099, "waiting"]]) {
    const { connection, live, last } = setUp();
    connection.start();
    live();
    last().closes(code, code === 4005 ? '{"reconnect_in_ms":30000}' : "");
    assert.equal(connection.state.phase, phase, String(code));
    if (code === 4005) assert.equal(connection.state.waitMs, 31_500);
  }
});

test("offline is a hint: attempts go on, seldom, and at once when the browser is back or a person asks", async () => {
  const { connection, timers, last, live, sockets } = setUp();
  connection.start();
  live();
  connection.setOnline(false);
  assert.equal(connection.state.phase, "live");
  last().closes(1006);
  assert.equal(connection.state.phase, "offline");
  await timers.pass(14_000);
  assert.equal(sockets.length, 1);
  await timers.pass(2_000);
  assert.equal(sockets.length, 2);
  last().closes(1006);
  assert.equal(connection.state.phase, "offline");
  connection.start();
  assert.equal(sockets.length, 3);
  live();
  assert.equal(connection.state.phase, "live");
  last().closes(1006);
  connection.setOnline(true);
  assert.equal(connection.state.phase, "connecting");
  assert.equal(sockets.length, 4);
});

test("a wait under way becomes a long one when the browser says offline, and ends when it is back", async () => {
  const { connection, timers, last, live, sockets } = setUp();
  connection.start();
  live();
  last().closes(1006);
  connection.setOnline(false);
  assert.deepEqual([connection.state.phase, connection.state.waitMs], ["offline", 15_000]);
  await timers.pass(10_000);
  assert.equal(sockets.length, 1);
  connection.setOnline(true);
  assert.equal(sockets.length, 2);
  last().closes(4403);
  connection.setOnline(false);
  connection.setOnline(true);
  assert.equal(connection.state.phase, "refused");
});

test("silence is broken by a ping; no answer to it is a lost connection", async () => {
  const { connection, timers, last, live } = setUp();
  connection.start();
  live({ heartbeat_ms: 10_000 });
  await timers.pass(12_000);
  assert.equal(last().sent.at(-1).op, "ping");
  last().says({ ev: "pong", id: last().sent.at(-1).id });
  await timers.pass(12_000);
  await timers.pass(10_000);
  assert.equal(connection.state.phase, "waiting");
});

test("a welcome that never comes is given up", async () => {
  const { connection, timers, last } = setUp();
  connection.start();
  last().opens();
  await timers.pass(12_000);
  assert.equal(connection.state.phase, "waiting");
});

test("stop lets go of socket and timers", async () => {
  const { connection, timers, last, live } = setUp();
  connection.start();
  live();
  connection.request("ping");
  connection.stop();
  await settle();
  assert.equal(timers.size, 0);
  assert.equal(last().closedWith, 1000);
});

test("a gift keeps its id over an unknown outcome and a lost socket", async () => {
  const { connection, timers, last, live } = setUp();
  connection.start();
  live();
  let unsure = 0;
  const fate = give(connection, { gift: "rose", count: 3 }, { timers, onUnsure: () => unsure++ });
  const first = last().sent.at(-1);
  last().says({ ev: "ack", id: first.id, code: 503, reason: "try_later", outcome: "unknown", retry_after_ms: 1200 });
  await timers.pass(1200);
  assert.deepEqual(last().sent.at(-1), first);
  last().closes(1006);
  await timers.pass(375);
  live();
  await timers.pass(1500);
  assert.deepEqual(last().sent.at(-1), first);
  last().says({ ev: "ack", id: first.id, code: 200, seq: 42, duplicate: true });
  assert.equal((await fate).seq, 42);
  assert.equal(unsure, 1);
});

test("a gift of which nobody knows when the time is up is said to be unsure", async () => {
  const { connection, timers, last, live } = setUp();
  connection.start();
  live();
  const fate = give(connection, { gift: "rose", count: 1 }, { timers, withinMs: 1000 });
  const unknown = { ev: "ack", id: last().sent.at(-1).id, code: 503, reason: "try_later", outcome: "unknown", retry_after_ms: 1200 };
  last().says(unknown);
  await timers.pass(1200);
  last().says(unknown);
  assert.equal((await fate).unsure, true);
});

test("a gift that was never sent, or was refused, is not tried again", async () => {
  const { connection, timers, last, live } = setUp();
  assert.equal((await give(connection, { gift: "rose", count: 1 }, { timers })).reason, "not_live");
  connection.start();
  live();
  const fate = give(connection, { gift: "rose", count: 1 }, { timers });
  last().says({ ev: "ack", id: last().sent.at(-1).id, code: 503, outcome: "refused", reason: "try_later" });
  const answer = await fate;
  assert.equal(answer.outcome, "refused");
  assert.equal(answer.unsure, undefined);
});

test("a custom event is handed on once, by its own name too, and moves no cursor", () => {
  const { connection, last, live, seen } = setUp();
  const customs = [];
  connection.on("custom", ({ type, data }) => customs.push([type, data]));
  connection.start();
  live();
  const poll = { ev: "custom", mid: "e1", type: "poll", data: { n: [1, 2] }, ts: 5000 };
  last().says(poll, poll, { ev: "custom", mid: "e2", type: "poll.end", data: null, ts: 5001 });
  assert.deepEqual(customs, [["poll", { n: [1, 2] }], ["poll.end", null]]);
  assert.equal(seen.events.length, 2);
  last().closes(1006);
  connection.start();
  last().opens();
  assert.equal(last().sent[0].resume.chat, 1000);
});
