import assert from "node:assert/strict";
import { test } from "node:test";
import { Backoff } from "../client/backoff.js";
import { readClose } from "../client/closing.js";
import { decode, encode } from "../client/codec.js";
import { CLOSE_CODES } from "../client/codes.js";
import { Cursor } from "../client/cursor.js";
import { Emitter } from "../client/emitter.js";

test("encode leaves undefined fields out and refuses what the server would", () => {
  assert.equal(encode("hello", { id: "1", token: undefined }), '{"op":"hello","id":"1"}');
  assert.throws(() => encode("shout"), TypeError);
  assert.throws(() => encode("danmaku", { text: "x".repeat(17_000) }), TypeError);
});

test("decode survives anything", () => {
  assert.deepEqual(decode("not json"), []);
  assert.deepEqual(decode('{"ev":"ack"}'), []);
  assert.deepEqual(decode(new Uint8Array(3)), []);
  assert.deepEqual(decode('[null,1,"x",[],{"ev":"later"},{"ev":"pong"}]'), [{ ev: "pong" }]);
});

test("waits stay within half and all of the ceiling", () => {
  for (const random of [0, 0.3, 0.999999]) {
    const backoff = new Backoff({ baseMs: 100, capMs: 1000, random: () => random });
    for (let n = 0; n < 40; n++) {
      const ceiling = Math.min(1000, 100 * 2 ** n);
      const wait = backoff.next();
      assert.ok(wait >= ceiling / 2 && wait <= ceiling, `${n}: ${wait}`);
    }
  }
});

test("an asked wait is never shortened", () => {
  for (const random of [0, 0.5, 1]) {
    const wait = new Backoff({ random: () => random }).asked(3000);
    assert.ok(wait >= 3000 && wait <= 3300);
  }
});

test("close codes fall into come back and not as you are", () => {
  for (const code of Object.keys(CLOSE_CODES).map(Number)) {
    const close = readClose(code, '{"reconnect_in_ms":500}');
    assert.equal(close.again, code >= 4400 ? "never" : "asked");
  }
  assert.equal(readClose(1006).again, "backoff");
  assert.equal(readClose(1006).name, "lost");
  for (const reason of ["", "null", "[1]", "{", '{"reconnect_in_ms":-1}', '{"reconnect_in_ms":"9"}', '{"reconnect_in_ms":1e999}']) {
    assert.equal(readClose(4003, reason).again, "backoff", reason);
  }
  assert.equal(readClose(1001, '{"reconnect_in_ms":1e12}').reconnectInMs, 600_000);
});

test("the cursor remembers at least the last thousand mids, in bounded memory", () => {
  const cursor = new Cursor();
  for (let i = 0; i < 5000; i++) assert.ok(cursor.fresh(`m${i}`));
  for (let i = 4000; i < 5000; i++) assert.ok(!cursor.fresh(`m${i}`), `m${i}`);
  assert.ok(cursor.fresh(undefined) && cursor.fresh(undefined));
});

const resumeOf = (cursor) => JSON.parse(JSON.stringify(cursor.resume)); // what travels

test("a resume that received nothing still has a position", () => {
  const cursor = new Cursor();
  assert.equal(cursor.resume, undefined);
  cursor.welcome({ cursor: { gift: 0, chat: 77 } }, false);
  assert.deepEqual(resumeOf(cursor), { gift: 0, chat: 77 });
  assert.deepEqual(cursor.gift({ seq: 3, prev: 0 }), null);
  cursor.welcome({ cursor: { gift: 9, chat: 99, last: "m9", ledger: "l" }, recovered: { gift: false } }, true);
  assert.deepEqual(resumeOf(cursor), { gift: 9, chat: 99, last: "m9", ledger: "l" });
});

test("the position is the last danmaku that others were shown too, whatever its time", () => {
  const cursor = new Cursor();
  cursor.welcome({ cursor: { gift: 0, chat: 77, last: "m1" } }, false);
  cursor.danmaku({ mid: "m2", ts: 9e15 });
  cursor.danmaku({ mid: "m3", ts: 50 });
  cursor.danmaku({ mid: "m4", ts: 60, hidden: true });
  assert.equal(cursor.resume.last, "m3");
  cursor.welcome({ cursor: { gift: 0, chat: 99 }, recovered: { gift: true, chat: false } }, true);
  assert.equal(cursor.resume.last, "m3"); // a server that tells no position
});

test("in another ledger, or an older one, gifts begin anew and none counts as known", () => {
  for (const [told, after] of [[{ ledger: "b" }, "b"], [{ ledger: "a" }, "a"]]) {
    const cursor = new Cursor();
    cursor.welcome({ cursor: { gift: 0, ledger: "a" } }, false);
    for (const mid of ["g1", "g2", "g41", "gm7"]) cursor.fresh(mid);
    cursor.gift({ seq: 41, prev: 2 });
    cursor.welcome({ cursor: { gift: 1, ...told }, recovered: { gift: false, chat: true } }, true);
    assert.deepEqual([cursor.resume.gift, cursor.resume.ledger], [1, after]);
    assert.ok(cursor.fresh("g2") && !cursor.fresh("g2") && !cursor.fresh("gm7"));
    assert.equal(cursor.gift({ seq: 2, prev: 1 }), null);
  }
  const cursor = new Cursor();
  cursor.welcome({ cursor: { gift: 0, ledger: "a" } }, false);
  cursor.fresh("g1");
  cursor.welcome({ cursor: { gift: 1, ledger: "a" }, recovered: { gift: true, chat: true } }, true);
  assert.ok(!cursor.fresh("g1"), "the same ledger, all recovered");
});

test("listeners end with their signal", () => {
  const emitter = new Emitter();
  const ends = new AbortController();
  let calls = 0;
  emitter.on("x", () => calls++, { signal: ends.signal });
  emitter.emit("x");
  ends.abort();
  emitter.emit("x");
  emitter.on("x", () => calls++, { signal: ends.signal });
  emitter.emit("x");
  assert.equal(calls, 1);
});
