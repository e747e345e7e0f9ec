// How a person is shown before anything is known of them: a colour and a sign.

import { graphemes } from "./older.js";

/** FNV-1a over UTF-16 units: spreads short ids well, and is the same everywhere. */
export function hash(text) {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h ^= h >>> 15;
  return h >>> 0;
}

/** `{name, initial, tone}`; the tone is 0 to 11, a named colour of the style sheet. */
export function portray(user) {
  const id = user?.id ?? "";
  const name = user?.name || id;
  const [initial = "?"] = graphemes(name);
  return { name, initial: initial.toLocaleUpperCase(), tone: hash(id) % 12 };
}
