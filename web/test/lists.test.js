import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ACTIONS, EXPRESSION, WordDraft, faultOf, readLines, wordFaults } from "../demo/models/lists/words.js";
import { GiftDraft } from "../demo/models/lists/gifts.js";
import { tables } from "../testkit/words.js";

const base = () => ({ version: 3, words: [{ word: "foo", action: "hold" }, { word: "bar", action: "refuse", whole: true }], pinyin: true });

test("a word is told what is wrong with it before the server has seen it", () => {
  const wanted = { foo: "", "垃圾": "", "": "empty", "!?": "nothing", "a": "short", "a.*b": "expression", "/x/i": "expression", "(a|b)": "expression", "5.0": "", [`${"x".repeat(257)}`]: "long" };
  for (const [word, fault] of Object.entries(wanted)) assert.equal(faultOf(word), fault, word.slice(0, 20));
  assert.equal(faultOf("a", true), "");
  for (const code of ["empty", "long", "expression", "nothing", "short", "known"]) for (const words of Object.values(tables)) assert.ok(words[`words.fault.${code}`], code);
  for (const action of ACTIONS) for (const words of Object.values(tables)) assert.ok(words[`words.actionOf.${action}`], action);
});

test("expressions are those of package filter, and actions those of the protocol", () => {
  const go = readFileSync(new URL("../../internal/filter/set.go", import.meta.url), "utf8");
  assert.equal(EXPRESSION.source.replace(/\\\//g, "/"), /MustCompile\(`(.*)`\)/.exec(go)[1]);
  const protocol = readFileSync(new URL("../../protocol/filter.go", import.meta.url), "utf8");
  assert.deepEqual([...protocol.matchAll(/FilterAction = "(\w+)"/g)].map((m) => m[1]), ACTIONS);
});

test("lines are words, each with its own action or the common one", () => {
  assert.deepEqual(readLines("foo\r\n\n  bar, refuse\nbaz\thold\nwell, well\n坏词，replace\n", "hold"), [
    { word: "foo", action: "hold" }, { word: "bar", action: "refuse" }, { word: "baz", action: "hold" }, { word: "well, well", action: "hold" }, { word: "坏词", action: "replace" }]);
});

test("a draft of words adds, changes, removes, and says so", () => {
  const draft = new WordDraft(base());
  assert.equal(draft.dirty, false);
  assert.deepEqual([draft.add(" new one ", "replace"), draft.add("foo", "hold"), draft.add("?", "hold")], ["", "known", "nothing"]);
  const [foo, bar] = ["foo", "bar"].map((w) => draft.find(w, 9).shown[0].key);
  draft.set(foo, { action: "refuse" });
  draft.toggle(bar);
  draft.setOption("traditional", true);
  assert.deepEqual(draft.list, { words: [{ word: "new one", action: "replace" }, { word: "foo", action: "refuse" }], traditional: true, pinyin: true });
  assert.deepEqual([draft.changed, draft.size, draft.changes().options], [4, 2, ["traditional"]]);
  assert.equal(draft.add("bar", "hold", true), "", "one that was removed is back");
  assert.equal(draft.entry(bar).removed, false);
  draft.reset();
  assert.deepEqual([draft.dirty, draft.list.words], [false, base().words]);
});

test("many words come in one step, and what can't be a word is told", () => {
  const draft = new WordDraft(base());
  const done = draft.addMany(readLines("foo\nqux\nqux\na.*b\n", "hold"));
  assert.deepEqual(done, { added: 1, known: 2, bad: [{ word: "a.*b", fault: "expression" }] });
  const many = new WordDraft({ words: Array.from({ length: 50_000 }, (_, i) => ({ word: `word${i}`, action: "hold" })) });
  const { shown, more } = many.find("word4999", 5);
  assert.deepEqual([shown.length, more, many.keyAt(50_000)], [5, 6, null]);
});

test("changes go on top of what somebody else put in force", () => {
  const draft = new WordDraft(base());
  draft.add("mine", "hold");
  draft.toggle(draft.find("foo", 1).shown[0].key);
  draft.set(draft.find("bar", 1).shown[0].key, { action: "replace" });
  draft.rebase({ version: 4, words: [{ word: "theirs", action: "hold" }, ...base().words], traditional: true });
  assert.deepEqual(draft.list, { words: [{ word: "mine", action: "hold" }, { word: "theirs", action: "hold" }, { word: "bar", action: "replace", whole: true }], traditional: true, pinyin: false });
  assert.equal(draft.base.version, 4);
});

test("the server's fault of a word is found in its sentence", () => {
  assert.deepEqual(wordFaults({ msg: "The request can't be read: settings.filter.words[7].word: allowed is x; received y" }), [{ path: "words[7].word", problem: "allowed is x; received y" }]);
  assert.deepEqual(wordFaults({ msg: "Too large" }), [{ path: "", problem: "Too large" }]);
  assert.deepEqual(wordFaults(null), []);
});

test("a catalogue is changed by gift and field, and its faults are found", () => {
  const draft = new GiftDraft({ version: 1, gifts: [{ id: "rose", name: "Rose", names: { zh: "玫瑰" }, price: 1 }, { id: "tea", name: "Tea", price: 5, icon: "🍵" }] });
  const [rose, tea] = draft.entries.map((e) => e.key);
  draft.set(rose, "price", 2);
  draft.set(rose, "names.zh", "");
  assert.deepEqual(draft.changes(), [{ rule: "rose", field: "names", before: { zh: "玫瑰" }, after: undefined }, { rule: "rose", field: "price", before: 1, after: 2 }]);
  draft.forward(tea);
  assert.deepEqual(draft.gifts.map((g) => g.id), ["tea", "rose"]);
  const kite = draft.add();
  draft.set(kite, "id", "tea");
  draft.set(kite, "price", "much");
  assert.deepEqual(draft.faults().map((f) => `${f.index}.${f.field} ${f.code}`), ["2.id taken", "2.price range", "2.name giftName"]);
  draft.set(kite, "id", "kite");
  draft.set(kite, "name", "Kite");
  draft.set(kite, "price", 9);
  draft.rebase({ version: 2, gifts: [{ id: "rose", name: "Rose", names: { zh: "玫瑰" }, price: 1 }, { id: "cup", name: "Cup", price: 3 }] });
  assert.deepEqual([draft.base.version, draft.gifts.map((g) => `${g.id} ${g.price}`)], [2, ["rose 2", "cup 3", "kite 9"]]);
  draft.remove(draft.entries[2].key);
  draft.reset();
  assert.equal(draft.dirty, false);
});
