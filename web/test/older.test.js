import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { copyOf, graphemes, last, within } from "../demo/models/older.js";

const web = new URL("../", import.meta.url);
const read = (file) => readFileSync(new URL(file, web), "utf8");
const list = (folder, end) => readdirSync(new URL(`${folder}/`, web), { recursive: true }).filter((f) => f.endsWith(end)).map((f) => `${folder}/${f}`);

/** What Chrome 96, Firefox 95 or Safari 15.2 lacks and would throw over, with what to take instead. */
const TOO_NEW = [
  [/\.at\(-/, "last of older.js"],
  [/\bstructuredClone\(/, "copyOf of older.js"],
  [/\bAbortSignal\.(any|timeout)\b|\bthrowIfAborted\b/, "within of older.js"],
  [/\bIntl\.(Segmenter|DurationFormat)\b/, "graphemes of older.js"],
  [/\.aria[A-Z]\w+ *=[^=]/, "aria of dom.js"],
  [/\.(toReversed|toSorted|toSpliced|with|findLast|findLastIndex|isWellFormed|toWellFormed)\(/, "a copy, changed"],
  [/\bObject\.(hasOwn|groupBy)\b|\bMap\.groupBy\b|\bPromise\.(withResolvers|try)\b|\bArray\.fromAsync\b|\bURL\.(canParse|parse)\b/, "a loop"],
  [/\bIterator\.|\.(union|intersection|difference|symmetricDifference|isSubsetOf)\(/, "a loop"],
  [/\.(roundRect|createConicGradient)\(|\bOffscreenCanvas\b|\.filter = "|\.letterSpacing/, "arcs and gradients of canvas"],
  [/\brequestIdleCallback\b|\bscheduler\.|\bnavigation\.|\brandomUUID\b|\bcreateImageBitmap\b|\bcheckVisibility\b|\bstartViewTransition\b|\bshowPopover\b/, "nothing"],
  [/\(\?<[=!]/, "no look-behind"],
  [/^\s+static \{/m, "no static block"],
];

test("no script asks for what browsers of five years ago lack", () => {
  for (const file of [...list("demo", ".js"), ...list("client", ".js")].filter((f) => f !== "demo/models/older.js")) {
    for (const [pattern, instead] of TOO_NEW) assert.doesNotMatch(read(file), pattern, `${file}: take ${instead}`);
  }
});

test("the list would see each of them", () => {
  for (const text of ["list.at(-1)", "structuredClone(x)", "AbortSignal.any([a])", "new Intl.Segmenter()", 'e.ariaLabel = "x"', "x.toReversed()", "Object.hasOwn(a, b)", "s.union(t)", "c.roundRect()", "crypto.randomUUID()", "/(?<=x)/", "class A {\n  static {\n"]) {
    assert.ok(TOO_NEW.some(([pattern]) => pattern.test(text)), text);
  }
});

test("styles that those browsers drop have one before them that they understand", () => {
  for (const file of list("demo", ".css")) {
    const css = read(file);
    assert.doesNotMatch(css, /light-dark\(|color-mix\(|oklch\(|@layer|@container|@scope|^\s*&/m, file);
    for (const [whole, name] of css.matchAll(/([\w-]+): [^;{}]*(?:\d(?:dvh|svh|lvh|cqw|cqh|cqi)\b)[^;{}]*;/g)) {
      const before = css.slice(0, css.indexOf(whole)).trimEnd();
      assert.match(before, new RegExp(`[{;\\s]${name}: [^;{}]*;$`), `${file}: ${whole}`);
    }
    for (const [selectors] of css.matchAll(/[^{}]*:has\([^{}]*(?=\{)/g)) assert.doesNotMatch(selectors, /,/, `${file}: one unknown selector drops the whole rule: ${selectors}`);
  }
});

test("characters are counted alike without a segmenter", async (t) => {
  const { Segmenter } = Intl;
  t.after(() => { Intl.Segmenter = Segmenter; });
  delete Intl.Segmenter;
  const plain = await import("../demo/models/older.js?plain");
  Intl.Segmenter = Segmenter;
  const texts = [
    "", "a", "héllo", "e\u0301", "弹幕 ok", "👨‍👩‍👧‍👦", "👍🏽👍", "🇨🇳🇩🇪🇨", "🏴󠁧󠁢󠁥󠁮󠁧󠁿!", "1️⃣#️⃣", "❤️‍🔥x", "a\r\nb", "नमस्ते", "한국어", "a\u200db", "👩\u200d", "z\u0302\u0303\u0304",
    ...JSON.parse(readFileSync(new URL("../protocol/testdata/text.json", web), "utf8")).flatMap((c) => [c.in]),
  ];
  for (const text of texts.map((t) => t.normalize("NFC"))) assert.deepEqual([...plain.graphemes(text)], [...graphemes(text)], JSON.stringify(text).slice(0, 80));
});

test("a deadline ends with any of its signals, and of itself", async () => {
  const page = new AbortController();
  const long = within(60_000, page.signal);
  assert.equal(long.aborted, false);
  page.abort();
  assert.equal(long.aborted, true);
  assert.equal(within(60_000, page.signal).aborted, true);
  const short = within(1, new AbortController().signal);
  await new Promise((resolve) => short.addEventListener("abort", resolve));
});

test("the last, and a copy", () => {
  assert.equal(last([1, 2]), 2);
  assert.equal(last([]), undefined);
  const rule = { tiers: [{ rate: 1 }] };
  const copy = copyOf(rule);
  copy.tiers[0].rate = 2;
  assert.equal(rule.tiers[0].rate, 1);
});
