// What not every browser of the last five years has (Chrome 96, Firefox 95, Safari 15.2), in as few words as the pages need.
// A test holds all other files to what those have.

/** The last of a list; undefined for an empty one. */
export const last = (list) => list[list.length - 1];

/** A copy of what JSON can say. */
export const copyOf = (value) => JSON.parse(JSON.stringify(value));

/** A signal that is aborted by any of `signals`, and after `ms`: it holds on to them no longer than that. */
export function within(ms, ...signals) {
  const ends = new AbortController();
  const end = () => ends.abort();
  const timer = setTimeout(end, ms);
  ends.signal.addEventListener("abort", () => clearTimeout(timer));
  for (const signal of signals) {
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { signal: ends.signal });
  }
  return ends.signal;
}

const EXTENDS = "[\\p{M}\\u0e33\\u0eb3\\p{Emoji_Modifier}\\u200c\\u200d\\ufe0f\\u{e0020}-\\u{e007f}]*";
/** Viramas that join the consonants around them: InCB=Linker. */
const LINKER = "[\\u094d\\u09cd\\u0acd\\u0b4d\\u0c4d\\u0d4d]";
/** Clusters of UAX #29 but for jamo that NFC does not compose: Firefox before 125 has no segmenter. */
const CLUSTER = new RegExp(`\\r\\n|\\p{RI}{2}${EXTENDS}|\\p{Extended_Pictographic}(?:${EXTENDS}\\u200d\\p{Extended_Pictographic})*${EXTENDS}|\\p{Lo}(?:${EXTENDS}${LINKER}${EXTENDS}\\p{Lo})*${EXTENDS}|[^]${EXTENDS}`, "gu");

const segmenter = Intl.Segmenter ? new Intl.Segmenter("en", { granularity: "grapheme" }) : null;

/** Extended grapheme clusters: what a reader calls characters. */
export function* graphemes(text) {
  if (segmenter) for (const { segment } of segmenter.segment(text)) yield segment;
  else for (const [cluster] of text.matchAll(CLUSTER)) yield cluster;
}
