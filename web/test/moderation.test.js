import assert from "node:assert/strict";
import { test } from "node:test";
import { Held, actsOn, canUndo, readSanction, undoneOf } from "../demo/models/moderation.js";
import { Messages } from "../demo/models/messages.js";

const said = (id, role, fields = {}) => ({ kind: "chat", mid: "m", user: { id, role }, ...fields });

test("what is offered follows rank, and what there is to act on", () => {
  const of = (me, entry) => actsOn(me, entry).join(" ");
  assert.equal(of(null, said("ann")), "");
  assert.equal(of({ id: "bob" }, said("ann")), "reply");
  assert.equal(of({ id: "s", role: "service" }, said("ann")), "reply", "a service moderates nothing");
  const mia = { id: "mia", role: "moderator" };
  assert.equal(of(mia, said("ann")), "reply delete pin mute ban kick cleanup who");
  assert.equal(of(mia, said("moe", "moderator")), "reply pin who", "nobody acts on an equal");
  assert.equal(of(mia, said("hal", "host")), "reply pin who");
  assert.equal(of(mia, said("s", "service")), "reply pin who", "and nobody on a service");
  assert.equal(of(mia, said("mia", "moderator")), "reply delete pin who", "own words alone");
  assert.equal(of({ id: "hal", role: "host" }, said("ann")), "reply delete pin mute ban kick cleanup appoint who");
  assert.equal(of({ id: "hal", role: "host" }, said("mia", "moderator")), "reply delete pin mute ban kick cleanup dismiss who");
  assert.equal(of(mia, said("ann", "viewer", { deleted: true })), "mute ban kick cleanup who", "no words, no act on them");
  assert.equal(of(mia, said("ann", "viewer", { mid: undefined })), "mute ban kick cleanup who");
  assert.equal(of(mia, { kind: "gift", user: { id: "ann" } }), "mute ban kick cleanup who");
  assert.equal(of(mia, { kind: "notice" }), "");
});

test("a sanction's form says what is wrong, and leaves out what was not said", () => {
  const read = (fields) => readSanction({ amount: "1", unit: 60, reason: "", network: false, ...fields });
  assert.deepEqual(read({}), { fields: { seconds: 60 } });
  assert.deepEqual(read({ amount: "2", unit: 3600, reason: " spam ", network: true }), { fields: { seconds: 7200, reason: "spam", network: true } });
  assert.deepEqual(read({ unit: 0, amount: "" }), { fields: { seconds: 0 } }, "for ever needs no number");
  for (const amount of ["", "0", "-1", "1.5", "x"]) assert.deepEqual(read({ amount }), { fault: "amount" }, amount);
  assert.deepEqual(read({ amount: "30", unit: 86_400 }).fields.seconds, 2_592_000);
  assert.deepEqual(read({ amount: "31", unit: 86_400 }), { fault: "long" });
  assert.deepEqual(read({ amount: "99999999999999999999" }), { fault: "long" });
});

test("the audit offers to undo what changed something and was not undone", () => {
  const entries = [{ seq: 4, action: "undo", undoes: 2, was: {} }, { seq: 3, action: "kick" }, { seq: 2, action: "mute", was: {} }, { seq: 1, action: "ban", was: {} }];
  const undone = undoneOf(entries);
  assert.deepEqual(entries.filter((e) => canUndo(e, undone)).map((e) => e.seq), [1]);
});

test("held messages: an older list does not bring back what was decided, and the oldest go", () => {
  const held = new Held(3);
  const h = (mid, state = "waiting", more = {}) => ({ mid, state, text: mid, ...more });
  assert.ok(held.take(h("a")));
  assert.ok(held.take(h("b")));
  assert.ok(held.take({ mid: "a", state: "released", by: "mia" }));
  assert.equal(held.take(h("a")), false);
  assert.deepEqual(held.waiting.map((w) => w.mid), ["b"]);
  assert.deepEqual(held.decided, [{ mid: "a", state: "released", text: "a", by: "mia" }]);
  held.take(h("c"));
  held.take(h("d"));
  assert.deepEqual(held.waiting.map((w) => w.mid), ["b", "c", "d"]);
});

test("an own held message waits, and is then sent in its place or dropped", () => {
  const messages = new Messages();
  messages.self = "me";
  for (const [id, mid, ts] of [["1", "m1", 10], ["2", "m2", 20]]) {
    messages.send(id, { user: { id: "me" }, text: mid });
    assert.equal(messages.answer(id, { code: 202, reason: "held", mid, ts }).status, "held");
  }
  assert.equal(messages.danmaku({ mid: "m1", user: { id: "me" }, text: "m1", ts: 10, released: true }), null);
  assert.equal(messages.decide("m2", "dropped").status, "dropped");
  assert.equal(messages.decide("m2", "sent"), null, "once");
  assert.deepEqual(messages.entries.map((e) => e.status), ["sent", "dropped"]);
  assert.deepEqual(messages.erase({ user: { id: "me" }, from: 0, until: 15 }), ["m1"], "an own message has the time of its answer");
  const reply = messages.danmaku({ mid: "r", ts: 12, text: "re", user: { id: "u" }, reply_to: { id: "me", name: "Nick" } });
  const later = messages.danmaku({ mid: "s", ts: 16, text: "re", user: { id: "u" }, reply_to: { id: "me", name: "Nick" } });
  const gift = messages.note({ kind: "gift", ts: 13, user: { id: "me", name: "Nick" }, count: 2 });
  messages.take();
  assert.deepEqual(messages.erase({ user: { id: "me" }, from: 11, until: 15 }), []);
  assert.deepEqual([reply.replyTo, gift.user, later.replyTo.name], [{ id: "me" }, { id: "me" }, "Nick"]);
  assert.deepEqual(messages.take().changed, [reply, gift]);
});

test("a message that was released late stands where its time is", () => {
  const messages = new Messages();
  const came = (mid, ts, more) => messages.danmaku({ mid, ts, text: mid, user: { id: "u" }, ...more });
  came("a", 10);
  came("c", 30);
  const b = came("b", 20, { released: true });
  assert.deepEqual(messages.entries.map((e) => e.mid), ["a", "b", "c"]);
  assert.equal(b.before, messages.entries[2].key);
  assert.equal(came("d", 40, { released: true }).before, undefined);
  assert.deepEqual(messages.take().added.length, 4);
});

test("a deletion that is taken back gives the words back", () => {
  const messages = new Messages();
  const entry = messages.danmaku({ mid: "m", ts: 1, text: "hello", user: { id: "u" } });
  messages.remove("m");
  messages.restore({ mid: "m", text: "hello" });
  messages.restore({ mid: "other", text: "x" });
  assert.equal(entry.deleted, false);
  assert.equal(entry.text, "hello");
});
