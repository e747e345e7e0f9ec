import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { cleanText, countGraphemes } from "../demo/models/text.js";

/** The faults of the page that the server calls bad_request; the others are too_long. */
const BAD = ["empty", "damaged", "control", "direction", "marks"];

const golden = JSON.parse(readFileSync(new URL("../../protocol/testdata/text.json", import.meta.url), "utf8"));

test("page and server give the same verdict on every golden text", () => {
  assert.ok(golden.length > 20);
  for (const { name, in: raw, out, reason } of golden) {
    const { text, fault } = cleanText(raw);
    const verdict = fault === null ? undefined : BAD.includes(fault) ? "bad_request" : "too_long";
    assert.equal(verdict, reason, name);
    if (fault === null) assert.equal(text, out, name);
  }
});

test("one person, one flag, one keycap, one Hangul syllable count one", () => {
  for (const one of ["👩‍👩‍👧‍👦", "🇵🇹", "1️⃣", "각", "e\u0301", "👍🏽", "🏴󠁧󠁢󠁷󠁬󠁳󠁿", "\r\n"]) assert.equal(countGraphemes(one), 1, one);
});

test("what is refused, and why", () => {
  const cases = {
    "": "empty", " \n\t\u3000 ": "empty", "\u200b\ufeff": "empty",
    "\ud800": "damaged", "a\udc00b": "damaged", "\ufffd": "damaged",
    "a\u0000": "control", "a\u009f": "control", "\u001b[31m": "control",
    "\u202eabc": "direction", "\u2066abc\u2069": "direction",
  };
  for (const [raw, fault] of Object.entries(cases)) assert.equal(cleanText(raw).fault, fault, JSON.stringify(raw));
  assert.equal(cleanText(`a${"\u0301".repeat(500)}`).fault, "marks");
  assert.equal(cleanText("字".repeat(101)).fault, "graphemes");
  assert.equal(cleanText("👨‍👩‍👧‍👦".repeat(50)).fault, "bytes");
  assert.equal(cleanText("a".repeat(100_000)).fault, "bytes");
});

test("what is mended", () => {
  assert.equal(cleanText("  a\n\n\nb\t c\u3000").text, "a b c");
  assert.equal(cleanText("e\u0301").text, "\u00e9");
  assert.equal(cleanText("a\u00ad\u200bb").text, "ab");
  assert.equal(cleanText("می\u200cخواهم").text, "می\u200cخواهم");
  assert.equal(cleanText("字".repeat(100)).fault, null);
});
