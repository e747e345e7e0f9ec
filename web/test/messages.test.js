import assert from "node:assert/strict";
import { test } from "node:test";
import { Announcer } from "../demo/models/announcer.js";
import { Follow } from "../demo/models/follow.js";
import { Messages } from "../demo/models/messages.js";

const me = { id: "me" };
const event = (mid, text, user = { id: "u" }) => ({ ev: "danmaku", mid, text, user, ts: 1 });

function room(capacity) {
  const messages = new Messages(capacity);
  messages.self = "me";
  return messages;
}

const shown = (messages) => messages.entries.map((e) => `${e.text}:${e.status}`);

test("own message: pending, then sent; event after ack or before it shows it once", () => {
  for (const order of ["ack first", "event first"]) {
    const messages = room();
    messages.send("c1", { user: me, text: "hi" });
    assert.deepEqual(shown(messages), ["hi:pending"]);
    if (order === "event first") assert.equal(messages.danmaku(event("m1", "hi", me)), null);
    messages.answer("c1", { code: 200, mid: "m1" });
    if (order === "ack first") assert.equal(messages.danmaku(event("m1", "hi", me)), null);
    assert.deepEqual(shown(messages), ["hi:sent"], order);
  }
});

test("own messages of another tab wait until it is known that they are not this one's", () => {
  const messages = room();
  messages.send("c1", { user: me, text: "here" });
  messages.danmaku(event("m9", "elsewhere", me));
  assert.equal(messages.entries.length, 1);
  messages.answer("c1", { code: 200, mid: "m1" });
  assert.deepEqual(shown(messages), ["here:sent", "elsewhere:sent"]);
  assert.ok(messages.entries[1].own);
});

test("202 is hidden, everything else failed with its answer", () => {
  const messages = room();
  messages.send("a", { user: me, text: "a" });
  messages.send("b", { user: me, text: "b" });
  messages.send("c", { user: me, text: "c" });
  messages.answer("a", { code: 202, reason: "room_busy", mid: "m1" });
  messages.answer("b", { code: 429, reason: "rate_limited", retry_after_ms: 5 });
  messages.answer("c", { code: 0, reason: "lost" });
  assert.deepEqual(shown(messages), ["a:hidden", "b:failed", "c:failed"]);
  assert.equal(messages.entries[1].answer.retry_after_ms, 5);
  assert.equal(messages.answer("a", { code: 200 }), null);
});

test("the list is capped, and the view learns what left", () => {
  const messages = room(3);
  for (const n of [1, 2, 3]) messages.danmaku(event(`m${n}`, String(n)));
  assert.equal(messages.take().added.length, 3);
  for (const n of [4, 5, 6, 7]) messages.danmaku(event(`m${n}`, String(n)));
  const { added, removed } = messages.take();
  assert.deepEqual(added.map((e) => e.text), ["5", "6", "7"]);
  assert.deepEqual(removed.map((e) => e.text), ["1", "2", "3"]);
});

test("a deleted message loses its words, also while unclaimed", () => {
  const messages = room();
  messages.danmaku(event("m1", "bad"));
  messages.take();
  messages.remove("m1");
  assert.ok(messages.take().changed[0].deleted);
  messages.send("c1", { user: me, text: "x" });
  messages.danmaku(event("m2", "other tab", me));
  messages.remove("m2");
  messages.answer("c1", { code: 200, mid: "m3" });
  assert.equal(messages.entries.length, 2);
});

test("a combo's line grows while it is near the end", () => {
  const messages = room();
  const line = messages.note({ kind: "gift", count: 1 });
  assert.ok(messages.update(line, { count: 2 }));
  assert.equal(line.count, 2);
  for (let i = 0; i < 50; i++) messages.danmaku(event(`m${i}`, "x"));
  assert.ok(!messages.update(line, { count: 3 }));
});

test("following ends when the reader scrolls up, and counts what came", () => {
  const follow = new Follow();
  follow.came(3);
  assert.equal(follow.unread, 0);
  follow.scrolled(500);
  follow.came(3);
  follow.came(2);
  assert.deepEqual([follow.following, follow.unread], [false, 5]);
  follow.scrolled(10);
  assert.deepEqual([follow.following, follow.unread], [true, 0]);
});

test("a screen reader hears of a flood now and then", () => {
  const announcer = new Announcer();
  assert.equal(announcer.take(0), null);
  announcer.message("a");
  assert.deepEqual(announcer.take(0), { count: 1, last: "a" });
  for (let i = 0; i < 300; i++) announcer.message(i);
  assert.equal(announcer.take(5999), null);
  assert.deepEqual(announcer.take(6000), { count: 300, last: 299 });
});
