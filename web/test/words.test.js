import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { CLOSE_CODES, REASONS, ROLES } from "../client/codes.js";
import { Language, chooseLanguage } from "../demo/models/language.js";
import { tables } from "../testkit/words.js";
import { explain, whyOf } from "../demo/models/refusal.js";

const { en } = tables;
const base = new URL("../demo/", import.meta.url);
const language = (code) => new Language(tables, code);

test("every word that a page or a module names exists", () => {
  const files = readdirSync(base, { recursive: true }).filter((f) => /\.(html|js)$/.test(f) && !f.startsWith("i18n"));
  for (const file of files) {
    const source = readFileSync(new URL(file, base), "utf8");
    const named = [
      ...source.matchAll(/data-t(?:-\w+)?="([^"]+)"/g),
      ...source.matchAll(/(?:\.text|#notice|#hint)\("([a-z]+\.[\w.]+)"/g),
    ];
    for (const [, key] of named) assert.ok(en[key] !== undefined, `${file}: ${key}`);
  }
});

test("every reason, every lasting close and every role has its words", () => {
  for (const code of Object.keys(tables)) {
    const words = language(code);
    for (const reason of Object.keys(REASONS)) {
      const said = whyOf({ reason, scope: "user" }, words);
      assert.ok(said.length > 1 && !said.includes("why."), `${code} ${reason}`);
    }
    for (const role of ROLES.slice(1)) assert.ok(words.has(`role.${role}`), role);
    for (const name of ["drain", "slow_consumer", "overloaded", "kicked", "abuse", "token", "forbidden", "no_such_room"]) {
      assert.ok(Object.values(CLOSE_CODES).includes(name));
      assert.ok(words.has(`state.why.${name}`), name);
    }
  }
});

test("a refusal says who is limited, why, and for how long", () => {
  const answer = { code: 429, reason: "rate_limited", scope: "room", rule: "danmaku-room", retry_after_ms: 850 };
  assert.equal(explain(answer, language("en")), "The whole room is sending too fast, it is not only you. Again in 1 s.");
  assert.equal(explain(answer, language("zh"), { leftMs: 61_000 }), "整个房间都太热闹了，不只是你，61 秒后再试。");
  assert.equal(whyOf({ reason: "forbidden" }, language("en"), "gift"), "Guests can't give gifts. Please sign in");
  assert.equal(whyOf({ reason: "rate_limited", scope: "user" }, language("en"), "danmaku", "them"), "Sent too fast");
  assert.equal(whyOf({ reason: "new_one", msg: "From the server" }, language("en")), "From the server");
});

test("numbers, plurals and waits follow the language", () => {
  assert.equal(language("en").text("room.newMessages", { n: 1 }), "1 new message");
  assert.equal(language("en").text("room.newMessages", { n: 1200 }), "1,200 new messages");
  assert.equal(language("zh").text("room.newMessages", { n: 1 }), "1 条新消息");
  assert.equal(language("en").text("lobby.count", { n: 1 }), "1 room");
  assert.equal(language("en").text("lobby.count", { n: 12 }), "12 rooms");
  assert.equal(language("en").text("room.likes", { n: 1 }), "1 like");
  assert.equal(language("zh").compact(12_834), "1.3万");
  assert.equal(language("en").duration(1), "1 s");
  assert.equal(language("en").duration(600_000), "10 min");
});

test("the chosen language wins, then the reader's first that exists, then English", () => {
  const known = ["en", "zh"];
  assert.equal(chooseLanguage("zh", ["en"], known), "zh");
  assert.equal(chooseLanguage(null, ["fr-CA", "zh-Hant-TW", "en"], known), "zh");
  assert.equal(chooseLanguage(null, ["pt-BR"], [...known, "pt", "pt-BR"]), "pt-BR");
  assert.equal(chooseLanguage("xx", ["fr"], known), "en");
  assert.equal(chooseLanguage(null, undefined, known), "en");
});
