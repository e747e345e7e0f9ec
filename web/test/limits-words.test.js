import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { check } from "../demo/models/limits/check.js";
import { confirmation, confirms } from "../demo/models/limits/confirmation.js";
import { sentence } from "../demo/models/limits/sentence.js";
import { ACTIONS, ALGORITHMS, COSTS, OUTAGES, ROLES, SCOPES } from "../demo/models/limits/vocabulary.js";
import { Language } from "../demo/models/language.js";
import { tables as words } from "../testkit/words.js";

const language = (code) => new Language(words, code);

test("whatever a rule may say has its words", () => {
  const keys = [
    ...ACTIONS.map((a) => `limits.action.${a}`), ...SCOPES.flatMap((s) => [`limits.scopeOf.${s}`, `limits.say.who.${s}`]),
    ...ALGORITHMS.map((a) => `limits.algorithmOf.${a}`), ...COSTS.map((c) => `limits.costOf.${c}`), ...OUTAGES.map((o) => `limits.outageOf.${o}`),
    ...ROLES.map((r) => `role.${r}`),
    ...["seed", "publish", "rollback", "guard", "file"].map((k) => `limits.kindOf.${k}`),
    ...["waiting", "within", "beyond", "kept", "rolled_back", "superseded", "unjudged"].map((s) => `limits.guard.${s}`),
    ...["applies", "shadow", "exempt", "other_room", "other_role", "other_attrs", "superseded"].map((w) => `explain.whyOf.${w}`),
    ...["none", "pass", "wait", "never"].map((v) => `explain.verdict.${v}`),
  ];
  for (const key of keys) assert.ok(words.en[key] !== undefined, key);
});

test("the words that the desks' views name by half a key exist", () => {
  const base = new URL("../demo/views/", import.meta.url);
  const prefixes = { "limits/explain.js": "explain", "limits/preview.js": "limits.preview", "lists/gifts.js": "gifts", "lists/caught.js": "words.preview" };
  for (const file of ["limits", "lists"].flatMap((folder) => readdirSync(new URL(folder, base)).map((f) => `${folder}/${f}`))) {
    const source = readFileSync(new URL(file, base), "utf8");
    const prefix = prefixes[file] ?? (file.startsWith("lists/") ? "words" : "limits");
    for (const [, key] of source.matchAll(/(?:#t|#pick|#text|#group|\bt)\((?:"[\w.[\]]+", )?"([a-zA-Z]\w*)"/g)) {
      const found = [`${prefix}.${key}`, `limits.${key}`].some((k) => words.en[k] !== undefined);
      assert.ok(found, `${file}: ${key}`);
    }
  }
});

test("every fault that the checks find has a sentence", () => {
  const source = readFileSync(new URL("../demo/models/limits/check.js", import.meta.url), "utf8");
  const codes = [...source.matchAll(/say\([^,]+, "(\w+)"/g)].map((m) => m[1]);
  assert.ok(codes.length > 10);
  for (const code of [...codes, "missing", "range"]) assert.ok(words.en[`limits.fault.${code}`], code);
  assert.equal(check([{ name: "x", action: [], scope: "user", rate: 1, burst: 1 }])[0].code, "someAction");
});

test("a rule in one sentence", () => {
  const rule = { name: "seat", action: ["danmaku"], scope: "user_room", rate: 1, burst: 3, multiply: { host: 5 } };
  assert.equal(sentence(rule, language("en")), "Each user in a room: Danmaku, 1 per s, 3 at once. Host ×5. What is beyond is refused.");
  assert.equal(sentence(rule, language("zh")), "每个用户在一个房间内：弹幕，每秒 1 次，最多一次 3。主播 ×5。超出的拒绝。");
  assert.match(sentence({ ...rule, where: { level: ">=10", badge: "gold" } }, language("en")), /Only users with level >=10, badge gold\. Host/);
  const room = { name: "room", action: ["danmaku"], scope: "room", tiers: [{ below: 1000, rate: 200, burst: 200 }, { rate: 40, burst: 80 }], degrade: { rate: 9, burst: 9 }, cluster: true, exempt: { roles: ["host"] } };
  assert.match(sentence(room, language("en")), /200 per s, 200 at once below 1,000 watching; else 40 per s.*Not for Host.*degraded, up to 9 per s.*over all nodes/);
  for (const code of Object.keys(words)) {
    for (const algorithm of ALGORITHMS) assert.ok(!sentence({ ...rule, algorithm, shadow: true }, language(code)).includes("limits."), algorithm);
  }
});

test("to override, somebody types the very figure that the preview warns of", () => {
  const line = (of, share) => ({ kind: "refused", of, proposed: { share } });
  const report = { reasons: [{ code: "refuses_more_messages" }], actions: [{ name: "gift", lines: [line("messages", 0.9)] }], lines: [line("messages", 0.344), line("users", 0.06)] };
  assert.deepEqual(confirmation(report, 7), { of: "messages", number: 34 });
  assert.deepEqual(confirmation({ ...report, reasons: [{ code: "refuses_more_messages", action: "gift" }] }, 7), { of: "messages", number: 90 });
  assert.deepEqual(confirmation({ ...report, reasons: [{ code: "refuses_more_users" }] }, 7), { of: "users", number: 6 });
  assert.deepEqual(confirmation(null, 7), { of: "version", number: 7 });
  for (const typed of ["34", " 34 % ", "３４"]) assert.ok(confirms(typed, { number: 34 }), typed);
  for (const typed of ["", "3", "344", "x"]) assert.ok(!confirms(typed, { number: 34 }), typed);
});
