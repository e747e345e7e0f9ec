// What may be said: the same verdicts as protocol.CleanText of the server, so
// that the counter under the hand tells the truth. protocol/testdata/text.json
// holds both to them.

import { graphemes } from "./older.js";

export const MAX_GRAPHEMES = 100;
export const MAX_BYTES = 1024;
/** Combining marks in a row. Living scripts need up to four; more is a tower over other people's lines. */
export const MAX_MARKS = 4;

const WHITE = "\\t\\n\\v\\f\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const SPACES = new RegExp(`[${WHITE}]+`, "gu");
const EDGES = /^ | $/g;
/** Fillers that show nothing and join nothing. The joiners U+200C and U+200D stay: scripts and emoji need them. */
const INVISIBLE = /[\u00ad\u115f\u1160\u200b\u2060\u3164\ufeff\uffa0]/gu;
/** What leaves something to see: no joiner, selector, tag or empty braille cell alone. */
const SHOWS = /[^\p{Default_Ignorable_Code_Point}\p{White_Space}\u2800]/u;
const CONTROL = /\p{Cc}/u;
const DIRECTION = /[\u202a-\u202e\u2066-\u2069]/u;
const DAMAGED = /[\ufffd\p{Cs}]/u;
const TOWER = new RegExp(`\\p{M}{${MAX_MARKS + 1}}`, "u");

const encoder = new TextEncoder();

/** Extended grapheme clusters (UAX #29): what a reader calls characters. */
export function countGraphemes(text) {
  let count = 0;
  for (const _ of graphemes(text)) count++;
  return count;
}

/**
 * Returns `{text, count, bytes, fault}`: the text as every viewer will see it,
 * and why it is refused: empty, damaged, control, direction, marks, bytes,
 * graphemes, or null.
 */
export function cleanText(raw, maxGraphemes = MAX_GRAPHEMES) {
  if (encoder.encode(raw).length > 16 * MAX_BYTES) return { text: "", count: raw.length, bytes: Infinity, fault: "bytes" };
  const text = raw.replace(INVISIBLE, "").replace(SPACES, " ").replace(EDGES, "").normalize("NFC");
  const bytes = encoder.encode(text).length;
  const count = countGraphemes(text);
  return { text, count, bytes, fault: faultOf(raw, text, count, bytes, maxGraphemes) };
}

function faultOf(raw, text, count, bytes, maxGraphemes) {
  if (DAMAGED.test(raw)) return "damaged";
  if (CONTROL.test(text)) return "control";
  if (DIRECTION.test(text)) return "direction";
  if (!SHOWS.test(text)) return "empty";
  if (TOWER.test(text)) return "marks";
  if (bytes > MAX_BYTES) return "bytes";
  if (count > maxGraphemes) return "graphemes";
  return null;
}
